import { connect, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";

/** A port that is attacked. */
export interface Target {
  /** Such as "registry". */
  name: string;
  host: string;
  port: number;
  isSecure: boolean;
  /** Paths that exist there. */
  paths: readonly string[];
}

/** One connection of a hostile client, from its first byte to its end. */
export interface Visit {
  /** What is wrong with it. */
  kind: string;
  target: Target;
  /** The client's own address; undefined for the machine's choice. */
  from?: string;
  /** Undefined: cleartext, on a TLS port as well. */
  tls?: { protocols: readonly string[]; cert?: string; key?: string };
  /** What is sent, piece by piece. */
  pieces: readonly Buffer[];
  /** How long after the last piece it ends, in milliseconds. */
  lingerMs: number;
  /** Waits for the first bytes of an answer, up to `lingerMs`, instead of for the time. */
  listens: boolean;
  end: "fin" | "reset";
  /** How many hostile requests, or sequences of frames, are in it. */
  mutants: number;
}

/** A connection that is not open, or not closed, by then is given up, in milliseconds. */
const LONGEST_VISIT_MS = 3_000;

/** Makes the visit. Always resolves, when the connection is gone. */
export function makeVisit(visit: Visit): Promise<void> {
  return new Promise((resolve) => {
    const socket = dial(visit);
    const longest = setTimeout(() => socket.destroy(), LONGEST_VISIT_MS);
    const leave = (): void => {
      if (visit.end === "reset" && visit.tls === undefined) socket.resetAndDestroy();
      else if (visit.end === "reset") socket.destroy();
      else socket.end(() => setTimeout(() => socket.destroy(), 1));
    };
    socket.once(visit.tls === undefined ? "connect" : "secureConnect", () => {
      for (const piece of visit.pieces) socket.write(piece);
      const timer = setTimeout(leave, visit.lingerMs);
      if (!visit.listens) return;
      socket.once("data", () => {
        clearTimeout(timer);
        leave();
      });
    });
    socket.on("error", () => undefined).resume();
    socket.once("close", () => {
      clearTimeout(longest);
      resolve();
    });
  });
}

function dial({ target, from, tls }: Visit): Socket {
  const { host, port } = target;
  const local = from === undefined ? {} : { localAddress: from };
  if (tls === undefined) return connect({ host, port, noDelay: true, ...local });
  const { protocols, ...shown } = tls;
  return connectTls({ host, port, ...local, ...shown, ALPNProtocols: [...protocols], rejectUnauthorized: false });
}
