import type { ServiceImpl } from "@connectrpc/connect";
import { Ingress } from "../../../gen/ts/reeve/common/v1/ingress_pb.ts";
import type { FanOutService } from "../../../gen/ts/reeve/fanout/v1/fan_out_service_pb.ts";
import { principalOf } from "../../../lib/server/context.ts";
import { faceOf } from "../calls/ingress.ts";
import { type FanOutPorts, fanOut } from "./fan-out.ts";

/** The RPCs of fan-outs. */
export function fanOutRoutes(ports: FanOutPorts): ServiceImpl<typeof FanOutService> {
  return {
    fanOut: (request, context) =>
      fanOut(request, principalOf(context), ports, context.signal, faceOf(context, Ingress.RPC)),
  };
}
