import type { ServiceImpl } from "@connectrpc/connect";
import type { FanOutService } from "../../../gen/ts/reeve/registry/v1/fan_out_service_pb.ts";
import { principalOf } from "../../../lib/serve/context.ts";
import { type FanOutPorts, fanOut } from "./fan-out.ts";

/** The RPCs of fan-outs. */
export function fanOutRoutes(ports: FanOutPorts): ServiceImpl<typeof FanOutService> {
  return {
    fanOut: (request, context) => fanOut(request, principalOf(context), ports, context.signal),
  };
}
