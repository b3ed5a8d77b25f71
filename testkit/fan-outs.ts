import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Client } from "@connectrpc/connect";
import type {
  FanOutService,
  FanOutSpecSchema,
  WatchFanOutResponse,
} from "../gen/ts/reeve/fanout/v1/fan_out_service_pb.ts";

/** A fan-out to start. */
export type FanOutRequest = MessageInitShape<typeof FanOutSpecSchema> & { fanOutId?: string };

/** Starts a fan-out and yields what happens to it. */
export async function* startAndWatch(
  client: Client<typeof FanOutService>,
  { fanOutId = "", ...spec }: FanOutRequest,
  signal?: AbortSignal,
): AsyncGenerator<WatchFanOutResponse> {
  const { fanOut } = await client.startFanOut({ spec, fanOutId });
  yield* client.watchFanOut({ fanOutId: fanOut?.id ?? "" }, signal && { signal });
}
