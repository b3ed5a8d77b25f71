import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import {
  type CallEvent,
  CallEventSchema,
  type CallToolRequestSchema,
} from "../gen/ts/reeve/call/v1/call_service_pb.ts";
import { isEnd } from "./call-progress.ts";
import type { CallRequest, CallStream, CallStreamOptions } from "./call-stream.ts";
import type { CallClient } from "./call-tool.ts";
import { type CompleteCall, completeCall } from "./complete-call.ts";
import { detailOf, isRetryable } from "./errors.ts";

/**
 * Sends each call by CallTool and follows it by WatchCall: for transports that cannot send a stream, such as a browser's.
 */
export function openWatchedCalls(client: CallClient, options: CallStreamOptions = {}): CallStream {
  return openUnaryCalls(client, { noWait: true }, options);
}

/**
 * Sends each call by CallTool and waits there for its end; only one that waits for a person is followed by WatchCall. For
 * callers to whom nothing but the end matters: a stream for each call costs the registry twice as much.
 */
export function openAwaitedCalls(client: CallClient, options: CallStreamOptions = {}): CallStream {
  return openUnaryCalls(client, { approvalWait: {} }, options);
}

function openUnaryCalls(
  client: CallClient,
  wait: MessageInitShape<typeof CallToolRequestSchema>,
  { signal, onEvent }: CallStreamOptions,
): CallStream {
  const options = signal === undefined ? {} : { signal };
  // A caller that does not wait in CallTool wants what is printed before it is watched, too.
  const from = ({ outputFromSequence = 0 }: CallRequest) => (wait.noWait ? { outputFromSequence } : {});
  const closed = Promise.withResolvers<{ error: unknown } | undefined>();
  let open = 0;
  let ended = false;
  const close = () => {
    if (ended && open === 0) closed.resolve(undefined);
  };
  const follow = async (request: CallRequest, emit: (event: CallEvent["event"]) => void): Promise<CompleteCall> => {
    const { call } = await client.callTool({ ...request, ...wait }, options).catch((error: unknown): never => {
      const detail = detailOf(error);
      if (detail !== undefined && !isRetryable(error)) {
        const { rawMessage: message } = ConnectError.from(error);
        emit({ case: "refusal", value: { $typeName: "reeve.call.v1.Refusal", error: detail, message } });
      }
      throw error;
    });
    if (call !== undefined) {
      emit({ case: "call", value: call });
      if (isEnd(completeCall(call).status.state)) return completeCall(call);
    }
    for await (const { event } of client.watchCall({ callId: request.callId, ...from(request) }, options)) {
      if (event === undefined) continue;
      emit(event.event);
      if (event.event.case !== "call") continue;
      const now = completeCall(event.event.value);
      if (isEnd(now.status.state)) return now;
    }
    throw new ConnectError("the stream ended before the call", Code.Unavailable);
  };
  return {
    async call(request, listener) {
      const { callId } = request;
      open++;
      try {
        return await follow(request, (event) => {
          const whole = create(CallEventSchema, { callId, event });
          onEvent?.(whole);
          listener?.(whole);
        });
      } finally {
        open--;
        close();
      }
    },
    cancel: (callId) => void client.cancelCall({ callId }, options).catch(() => undefined),
    end() {
      ended = true;
      close();
    },
    closed: closed.promise,
  };
}
