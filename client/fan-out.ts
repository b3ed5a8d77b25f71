import type { MessageInitShape } from "@bufbuild/protobuf";
import { type Client, Code, ConnectError } from "@connectrpc/connect";
import { ErrorReason } from "../gen/ts/reeve/common/v1/error_pb.ts";
import type {
  FanOutService,
  FanOutSpecSchema,
  FanOutSummary,
  WatchFanOutResponse,
} from "../gen/ts/reeve/fanout/v1/fan_out_service_pb.ts";
import { createError, reasonOf } from "./errors.ts";
import { mayReconnect, pause, RETRY_DELAYS_MS, reopened, type WatchOptions } from "./retry.ts";

/** How to follow a fan-out. */
export interface FollowFanOutOptions {
  client: Pick<Client<typeof FanOutService>, "startFanOut" | "watchFanOut" | "cancelFanOut">;
  /** Makes starting it again safe: letters, digits, "-" and "_", at most 40. */
  fanOutId: string;
  spec: MessageInitShape<typeof FanOutSpecSchema>;
  /** How long it is waited for while a human has to decide about it, in milliseconds. Default: as long as it takes. */
  approvalWaitMs?: number;
  /** The pauses before each new try after the connection broke, in milliseconds. They start over once an event came. */
  retryDelaysMs?: readonly number[];
  /** Aborting it cancels the fan-out; its end is waited for. */
  signal?: AbortSignal;
  /** Receives what happens, but for the summary. What came before a connection broke comes again. Must not throw. */
  onEvent?: (event: WatchFanOutResponse["event"]) => void;
}

/**
 * Starts a fan-out, or finds the one of that id, and follows it to its summary over connections that break. Resolves with
 * undefined where it is still held when the wait is over: it goes on without a follower. Rejects with why it was refused,
 * and with INTERRUPTED where the connection is gone for good.
 */
export async function followFanOut(options: FollowFanOutOptions): Promise<FanOutSummary | undefined> {
  const { client, spec, signal, retryDelaysMs = RETRY_DELAYS_MS } = options;
  const waitOver = new AbortController();
  let clock: ReturnType<typeof setTimeout> | undefined;
  let fanOutId = options.fanOutId;
  let cancel: Promise<unknown> | undefined;
  const requestCancel = () => {
    cancel = client.cancelFanOut({ fanOutId }).catch(() => undefined);
  };
  signal?.addEventListener("abort", requestCancel, { once: true });
  try {
    for (let failures = 0; ; failures++) {
      try {
        if (signal?.aborted) await (cancel ?? client.cancelFanOut({ fanOutId }));
        else fanOutId = (await client.startFanOut({ spec, fanOutId })).fanOut?.id ?? fanOutId;
        for await (const { event } of client.watchFanOut({ fanOutId }, { signal: waitOver.signal })) {
          failures = 0;
          clearTimeout(clock);
          if (event.case === "summary") return event.value;
          options.onEvent?.(event);
          if (event.case === "held" && options.approvalWaitMs !== undefined) {
            clock = setTimeout(() => waitOver.abort(), options.approvalWaitMs);
          }
        }
        throw new ConnectError("the stream ended before the fan-out", Code.Unavailable);
      } catch (error: unknown) {
        if (waitOver.signal.aborted) return undefined;
        const delay = mayReconnect(error) ? retryDelaysMs[failures] : undefined;
        if (delay === undefined) throw lost(error, fanOutId);
        await pause(delay);
      }
    }
  } finally {
    clearTimeout(clock);
    signal?.removeEventListener("abort", requestCancel);
  }
}

/**
 * What happens to a fan-out, the summary last. Goes on over restarts of the registry; what came before one comes again.
 * Rejects where the registry cannot be reached at the beginning, and with any error that is final.
 */
export async function* watchFanOut(
  client: Pick<Client<typeof FanOutService>, "getFanOut" | "watchFanOut">,
  fanOutId: string,
  options: WatchOptions = {},
): AsyncGenerator<WatchFanOutResponse> {
  const call = options.signal === undefined ? {} : { signal: options.signal };
  const open = async () => {
    await client.getFanOut({ fanOutId }, call);
    return client.watchFanOut({ fanOutId }, call);
  };
  for await (const response of reopened(open, options)) {
    yield response;
    if (response.event.case === "summary") return;
  }
}

function lost(error: unknown, fanOutId: string): unknown {
  if (reasonOf(error) !== ErrorReason.UNSPECIFIED || !mayReconnect(error)) return error;
  const message = `the connection to the registry is gone; the fan-out ${fanOutId} goes on`;
  return createError(ErrorReason.INTERRUPTED, message, { call_id: fanOutId }, error);
}
