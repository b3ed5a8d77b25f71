import type { ServiceImpl } from "@connectrpc/connect";
import { Ingress } from "../../../gen/ts/reeve/common/v1/ingress_pb.ts";
import type { FanOutService } from "../../../gen/ts/reeve/fanout/v1/fan_out_service_pb.ts";
import { principalOf } from "../../../lib/server/context.ts";
import { faceOf } from "../calls/ingress.ts";
import { type FanOuts, fanOutOf } from "./fan-outs.ts";
import { type WatchPorts, watchFanOut } from "./watch.ts";

/** The RPCs of fan-outs. */
export function fanOutRoutes(fanOuts: FanOuts, ports: WatchPorts): ServiceImpl<typeof FanOutService> {
  return {
    async startFanOut(request, context) {
      const one = await fanOuts.start(request, principalOf(context), faceOf(context, Ingress.RPC));
      return { fanOut: fanOutOf(one) };
    },
    getFanOut: async ({ fanOutId }, context) => ({
      fanOut: fanOutOf(await fanOuts.find(fanOutId, principalOf(context))),
    }),
    async listFanOuts(request, context) {
      const { fanOuts: found, nextPageToken } = await fanOuts.list(request, principalOf(context));
      return { fanOuts: found.map(fanOutOf), nextPageToken };
    },
    async *watchFanOut({ fanOutId }, context) {
      yield* watchFanOut(await fanOuts.find(fanOutId, principalOf(context)), ports, context.signal);
    },
    cancelFanOut: async ({ fanOutId }, context) => ({
      fanOut: fanOutOf(await fanOuts.cancel(fanOutId, principalOf(context))),
    }),
  };
}
