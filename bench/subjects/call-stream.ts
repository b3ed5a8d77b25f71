import { type CallRequest, openCallStream as openStream } from "../../client/call-stream.ts";
import type { CompleteCall } from "../../client/complete-call.ts";
import type { RegistryClient } from "../../client/registry.ts";

/** A caller's stream of calls, each with an id of its own. */
export interface CallStream {
  call(request: Omit<CallRequest, "callId">): Promise<CompleteCall>;
  /** Announces that no more calls come: the stream ends. */
  end(): void;
}

let streams = 0;

/** Opens one stream for all calls. A failure of the stream ends the benchmark. */
export function openCallStream(client: RegistryClient): CallStream {
  const stream = openStream(client);
  const prefix = `bench-${process.pid}-${Date.now()}-${streams++}`;
  let next = 0;
  return {
    call: (request) => stream.call({ ...request, callId: `${prefix}-${next++}` }),
    end: stream.end,
  };
}
