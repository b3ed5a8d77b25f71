import type { ConnectRouter } from "@connectrpc/connect";
import { AttachService } from "../../../gen/ts/reeve/device/v1/attach_service_pb.ts";
import { principalOf } from "../../../lib/server/context.ts";
import type { AttachPoint } from "./attach-point.ts";

/** Registers AttachService: a device is who its certificate says. */
export function attachRoutes(point: AttachPoint): (router: ConnectRouter) => void {
  return (router) =>
    router.service(AttachService, {
      attach: (requests, context) => point.attach(principalOf(context).id, requests, context.signal),
    });
}
