import { create } from "@bufbuild/protobuf";
import { CloseSessionSchema, KeepAliveSchema, type ReplicaBody } from "../../../gen/ts/reeve/cluster/v1/replica_pb.ts";
import { createBatchQueue } from "../../../lib/async/batch-queue.ts";

/** What is said in a session. */
export type SessionMessage = ReplicaBody["message"];

/** A stream of messages between this replica and another. */
export interface Session {
  readonly id: string;
  /** The other replica. */
  readonly peer: string;
  /** Sends a message. Nothing happens after the end; a message that cannot leave ends the session. */
  send(message: SessionMessage): void;
  /** Resolves when what was sent is with the server: whoever sends much awaits this between its messages. */
  flush(): Promise<void>;
  /** What the other says, from its opening message on. Ends when it closes, throws when it closes for a reason or is lost. Read once. */
  messages(): AsyncGenerator<SessionMessage, void, void>;
  /** Aborted when the session is over. */
  readonly over: AbortSignal;
  /** Ends it. @param why for the other side; empty for a clean end. */
  close(why?: string): void;
}

/** The session's side towards the bus. */
export interface Wire {
  /** Takes a message of the other. */
  take(number: bigint, message: SessionMessage): "taken" | "replayed";
  /** Ends it without a word to the other, who cannot be reached. */
  fail(why: string): void;
  /** Called from time to time: shows that this side is there, and gives up another that is silent. */
  beat(keepAliveMs: number): void;
}

/** What a session rests on. */
export interface SessionOptions {
  id: string;
  peer: string;
  /** Sends, or throws. */
  send(number: bigint, message: SessionMessage): void;
  flush(): Promise<void>;
  onEnd(): void;
}

/** How many silent intervals end a session. */
const SILENT_INTERVALS = 4;

/** One side of a session. Both directions are numbered without gaps: a gap means that the bus lost something. */
export function createSession(options: SessionOptions): Session & Wire {
  const { id, peer } = options;
  const incoming = createBatchQueue<SessionMessage>();
  const over = new AbortController();
  let sent = 0n;
  let taken = 0n;
  let lastSent = performance.now();
  let lastHeard = lastSent;

  const end = (error: Error | undefined): void => {
    if (over.signal.aborted) return;
    incoming.end(error);
    over.abort(error);
    options.onEnd();
  };
  const send = (message: SessionMessage): void => {
    if (over.signal.aborted) return;
    lastSent = performance.now();
    try {
      options.send(++sent, message);
    } catch (error: unknown) {
      end(error instanceof Error ? error : new Error(String(error)));
    }
  };

  return {
    id,
    peer,
    send,
    flush: () => options.flush(),
    async *messages() {
      for await (const batch of incoming.batches()) yield* batch;
    },
    over: over.signal,
    close(why = "") {
      send({ case: "close", value: create(CloseSessionSchema, { why }) });
      end(undefined);
    },
    take(number, message) {
      if (number <= taken) return "replayed";
      lastHeard = performance.now();
      if (number !== taken + 1n) {
        send({ case: "close", value: create(CloseSessionSchema, { why: "the bus lost a message" }) });
        end(new Error("the bus between the replicas lost a message"));
        return "taken";
      }
      taken = number;
      if (message.case === "close") end(message.value.why === "" ? undefined : new Error(message.value.why));
      else if (message.case !== "keepAlive") incoming.push(message);
      return "taken";
    },
    fail: (why) => end(new Error(why)),
    beat(keepAliveMs) {
      const now = performance.now();
      if (now - lastHeard > SILENT_INTERVALS * keepAliveMs) end(new Error(`the replica ${peer} does not answer`));
      else if (now - lastSent >= keepAliveMs) send({ case: "keepAlive", value: create(KeepAliveSchema) });
    },
  };
}
