import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { CLIENT_PREFACE } from "./http2.ts";
import type { Target } from "./visit.ts";

/** Strangers who hold connections. */
export interface Crowd {
  /** How many connections were made. */
  readonly connected: number;
  /** How many the server has not closed. */
  open(): number;
  leave(): void;
}

/** What they send: nothing, half of a request, or the beginning of HTTP/2. */
const OPENINGS = [
  Buffer.alloc(0),
  Buffer.from("POST /healthz HTTP/1.1\r\nhost: a\r\nx-slow:"),
  CLIENT_PREFACE,
  CLIENT_PREFACE,
];

/** They come from so many addresses of this machine. */
const ADDRESSES = 200;

/** Connections that are being made at a time. */
const AT_ONCE = 64;

/** Makes so many connections and holds them. Resolves when all are made, or refused. */
export async function joinCrowd({ host, port }: Target, connections: number): Promise<Crowd> {
  const sockets: Socket[] = [];
  let connected = 0;
  let next = 0;
  const one = async (): Promise<void> => {
    while (next < connections) {
      const number = next++;
      // Linux has all of 127.0.0.0/8; elsewhere everybody comes from one address.
      const from = process.platform === "linux" ? { localAddress: `127.0.1.${1 + (number % ADDRESSES)}` } : {};
      const socket = connect({ host, port, ...from })
        .on("error", () => undefined)
        .resume();
      sockets.push(socket);
      const isConnected = await once(socket, "connect").then(
        () => true,
        () => false,
      );
      if (!isConnected) continue;
      connected++;
      socket.write(OPENINGS[number % OPENINGS.length] as Buffer);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, one));
  return {
    connected,
    open: () => sockets.filter((socket) => socket.readyState === "open").length,
    leave() {
      for (const socket of sockets) socket.destroy();
    },
  };
}
