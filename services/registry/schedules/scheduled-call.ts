import { durationMs } from "@bufbuild/protobuf/wkt";
import { Ingress } from "../../../gen/ts/reeve/common/v1/ingress_pb.ts";
import { Role } from "../../../gen/ts/reeve/options/v1/access_pb.ts";
import type { ScheduleSpec } from "../../../gen/ts/reeve/schedule/v1/schedule_service_pb.ts";
import type { Principal } from "../../../lib/auth/principal.ts";
import type { CallRequest } from "../calls/receive.ts";

/**
 * Who calls for a schedule: a workflow of its own, which no token and no certificate can show. So that a rule can name one
 * schedule, and a schedule lends its maker's rights to no call.
 */
export function schedulePrincipal(name: string): Principal {
  return { id: `schedule/${name}`, kind: "workflow", roles: [Role.WORKFLOW], name: `schedule ${name}` };
}

/** The id of the call of one time of a schedule: the same on every replica, however often it is tried. */
export function scheduledCallId(name: string, scheduledMs: number): string {
  const time = new Date(scheduledMs).toISOString().replace(/[-:.]/g, "");
  return `${name}-${time}`;
}

/** What is asked of the gate for one time of a schedule. */
export function scheduledRequest(name: string, spec: ScheduleSpec, callId: string): CallRequest {
  return {
    device: spec.device,
    tool: spec.tool,
    params: spec.params ?? {},
    chosenId: "",
    callId,
    purpose: spec.purpose === "" ? `schedule ${name}` : `schedule ${name}: ${spec.purpose}`,
    ingress: Ingress.WORKFLOW,
    client: "schedule",
    principal: schedulePrincipal(name),
    queueMs: spec.queueTimeout ? durationMs(spec.queueTimeout) : 0,
  };
}
