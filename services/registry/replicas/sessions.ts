import { randomBytes } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { KeepAliveSchema, type ReplicaBody, ReplicaBodySchema } from "../../../gen/ts/reeve/cluster/v1/replica_pb.ts";
import type { Post } from "../../../lib/events/nats-post.ts";
import type { Logger } from "../../../lib/log/log.ts";
import { createRefusalLog } from "./refusal-log.ts";
import { type BusKeys, MAX_AGE_MS, openMessage, type RefusedWhy, sealMessage } from "./sealed-message.ts";
import { createSession, type Session, type SessionMessage, type Wire } from "./session.ts";

/** The sessions between this replica and the others: streams of messages over core NATS. */
export interface Sessions {
  /** Opens a session. It breaks when the other replica is not there, does not want it, or stays silent. */
  open(to: string, opening: SessionMessage): Session;
  /** Tells all other replicas that there is something new in the database. Lost where the bus is down: they poll, too. */
  nudge(): void;
  /** Messages refused since the start. */
  readonly refused: number;
  /** Ends all sessions and listens no more. The connection stays open. */
  close(): void;
}

/** What sessions rest on. */
export interface SessionsOptions {
  self: string;
  post: Post;
  keys: BusKeys;
  logger: Logger;
  now(): number;
  /** Takes a session that another replica opened. Must not throw. */
  serve(session: Session, opening: SessionMessage): void;
  /** Another replica said that there is something new in the database. */
  onNudge(): void;
  /** A message was refused. */
  onRefused?(why: RefusedWhy): void;
  /** How often a session that says nothing shows that it is there, in milliseconds. Default 1000; silence of four times as much breaks it. */
  keepAliveMs?: number;
}

/** Not under the root of events, whose stream would store these. */
const SUBJECT = "reeve_replica";

/** To every replica. */
const ALL = "all";

/** A session is remembered after its end for as long as a message of it could be played again. */
const REMEMBER_MS = 2 * MAX_AGE_MS;

/** The subject on which a replica listens. */
function subjectOfReplica(replicaId: string): string {
  return `${SUBJECT}.${replicaId}`;
}

/** Joins this replica to the bus. */
export function createSessions(options: SessionsOptions): Sessions {
  const { self, post, keys, logger, now, keepAliveMs = 1000 } = options;
  const sessions = new Map<string, Session & Wire>();
  /** When each session ended that is over, in order. */
  const over = new Map<string, number>();
  /** By replica: the number of its last word to all. */
  const nudges = new Map<string, bigint>();
  let nudgesSent = 0n;
  const refusals = createRefusalLog({ logger });
  let refusedCount = 0;

  const refuse = (why: RefusedWhy): void => {
    refusedCount++;
    options.onRefused?.(why);
    refusals.note(why);
  };
  const send = (to: string, part: Pick<ReplicaBody, "session" | "number" | "message">): void => {
    const body = create(ReplicaBodySchema, { from: self, to, time: timestampFromMs(now()), ...part });
    const bytes = sealMessage(body, keys);
    if (bytes.length > post.maxBytes) throw new Error(`a message of ${bytes.length} bytes is too large for the bus`);
    if (!post.send(subjectOfReplica(to), bytes)) throw new Error("the bus between the replicas is down");
  };
  const add = (id: string, peer: string): Session & Wire => {
    const session = createSession({
      id,
      peer,
      send: (number, message) => send(peer, { session: id, number, message }),
      flush: () => post.flush(),
      onEnd() {
        sessions.delete(id);
        over.set(id, performance.now());
      },
    });
    sessions.set(id, session);
    return session;
  };

  const take = (body: ReplicaBody): void => {
    const { session: id, from, number, message } = body;
    const running = sessions.get(id);
    if (running === undefined) takeNew(body);
    else if (running.peer !== from) refuse("misdirected");
    else if (running.take(number, message) === "replayed") refuse("stale");
  };
  const takeNew = ({ session: id, from, number, message }: ReplicaBody): void => {
    const opens = message.case === "openDevice" || message.case === "openCall";
    // What comes late for a session that has just ended is honest; an opening that comes again is not.
    if (over.has(id) && !opens) return;
    if (over.has(id) || !opens || number !== 1n) refuse("stale");
    else if (id === "") refuse("malformed");
    else {
      const session = add(id, from);
      session.take(number, message);
      options.serve(session, message);
    }
  };
  const takeNudge = ({ from, number }: ReplicaBody): void => {
    if (number <= (nudges.get(from) ?? 0n)) {
      refuse("stale");
      return;
    }
    nudges.set(from, number);
    options.onNudge();
  };
  const listen = (to: string, receive: (body: ReplicaBody) => void): (() => void) =>
    post.listen(subjectOfReplica(to), (bytes) => {
      const opened = openMessage(bytes, { keys, to, self, now: now() });
      if (opened.ok) receive(opened.body);
      // This replica's own words to all come back to it, which is nobody's fault.
      else if (!(to === ALL && opened.why === "misdirected" && opened.own)) refuse(opened.why);
    });

  const stops = [listen(self, take), listen(ALL, takeNudge)];
  stops.push(
    post.onDown(() => {
      for (const session of [...sessions.values()]) session.fail("the bus between the replicas broke");
    }),
  );
  const timer = setInterval(() => {
    for (const session of [...sessions.values()]) session.beat(keepAliveMs);
    refusals.flush();
    const old = performance.now() - REMEMBER_MS;
    for (const [id, at] of over) {
      if (at > old) break;
      over.delete(id);
    }
  }, keepAliveMs / 2);

  return {
    open(to, opening) {
      const session = add(randomBytes(16).toString("hex"), to);
      session.send(opening);
      return session;
    },
    nudge() {
      try {
        send(ALL, {
          session: "",
          number: ++nudgesSent,
          message: { case: "keepAlive", value: create(KeepAliveSchema) },
        });
      } catch {
        // They look by themselves soon.
      }
    },
    get refused() {
      return refusedCount;
    },
    close() {
      clearInterval(timer);
      for (const session of [...sessions.values()]) session.close("the replica is leaving");
      for (const stop of stops) stop();
    },
  };
}
