import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type AuditRecord, AuditRecordSchema } from "../../../gen/ts/reeve/audit/v1/record_pb.ts";

/** The name under which the log speaks of one tool on one device. */
export function deviceToolResource(deviceId: string, tool: string): string {
  return `devices/${deviceId}/tools/${tool}`;
}

/** The name under which the log speaks of one tool on all the devices of a fan-out. */
export function fanOutToolResource(fanOutId: string, tool: string): string {
  return `fan-outs/${fanOutId}/tools/${tool}`;
}

/** The longest problem text that the log keeps. */
const MAX_PROBLEM = 2000;

/** The record of a policy that was loaded (no problem) or refused. */
export function policyLoadedRecord(version: string, problem: string, nowMs: number): AuditRecord {
  return create(AuditRecordSchema, {
    version: 1,
    time: timestampFromMs(nowMs),
    actor: "policy",
    resource: `policies/${version}`,
    event: {
      case: "policyLoaded",
      value: { policyVersion: version, accepted: problem === "", problem: problem.slice(0, MAX_PROBLEM) },
    },
  });
}
