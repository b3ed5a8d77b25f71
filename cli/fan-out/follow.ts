import { setTimeout as sleep } from "node:timers/promises";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { type Client, Code, ConnectError } from "@connectrpc/connect";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import type {
  FanOutRequestSchema,
  FanOutResponse,
  FanOutService,
  FanOutSummary,
} from "../../gen/ts/reeve/fanout/v1/fan_out_service_pb.ts";
import { fault, faultDetail, isRetryable } from "../../lib/fault/fault.ts";

/** What following a fan-out rests on. */
export interface FollowOptions {
  client: Client<typeof FanOutService>;
  /** Its id is what makes sending it again safe. */
  request: MessageInitShape<typeof FanOutRequestSchema> & { fanOutId: string };
  /** Aborting it leaves: no further wave is started, and calls that run go on. */
  signal: AbortSignal;
  onEvent(event: FanOutResponse["event"]): void;
  /** The pauses before new tries when the stream breaks, in milliseconds. Default 20 seconds in all. */
  retryDelaysMs?: readonly number[];
}

const RETRY_DELAYS_MS = [200, 400, 800, 1600, 3000, 4000, 5000, 5000];

/**
 * Sends a fan-out and follows it to its summary; undefined where the signal has aborted before that. A stream that breaks
 * is opened again with the same id, and goes on where the fan-out stands: what is told twice is passed on twice. Throws
 * why it was refused, or why the link is gone for good.
 */
export async function followFanOut(options: FollowOptions): Promise<FanOutSummary | undefined> {
  const { request, signal, retryDelaysMs = RETRY_DELAYS_MS } = options;
  for (let failures = 0; ; failures++) {
    let told = false;
    try {
      for await (const { event } of options.client.fanOut(request, { signal })) {
        told = true;
        if (event.case === "summary") return event.value;
        options.onEvent(event);
      }
      throw new ConnectError("the stream ended before the fan-out", Code.Unavailable);
    } catch (error: unknown) {
      if (signal.aborted) return undefined;
      if (told) failures = 0;
      const delay = mayRetry(error) ? retryDelaysMs[failures] : undefined;
      if (delay === undefined) throw broken(error, request.fanOutId);
      await sleep(delay, undefined, { signal }).catch(() => undefined);
    }
  }
}

const BROKEN: ReadonlySet<Code> = new Set([Code.Unavailable, Code.Aborted, Code.Internal, Code.Unknown, Code.Canceled]);

function mayRetry(error: unknown): boolean {
  if (faultDetail(error) !== undefined) return isRetryable(error);
  return BROKEN.has(ConnectError.from(error).code);
}

function broken(error: unknown, fanOutId: string): unknown {
  if (faultDetail(error) !== undefined || !mayRetry(error)) return error;
  const message = `the link to the registry broke; the same again with --fanout-id ${fanOutId} goes on where it stands`;
  return fault(ErrorReason.INTERRUPTED, { call_id: fanOutId }, { message, cause: error });
}
