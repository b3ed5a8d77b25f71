import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type AuditRecord, AuditRecordSchema } from "../../../gen/ts/reeve/audit/v1/record_pb.ts";
import { KeyRole } from "../../../gen/ts/reeve/key/v1/key_service_pb.ts";
import type { KeyStep } from "./key-steps.ts";

/** The word for a role, as the log and the command line use it. */
function roleWord(role: number): string {
  return role === KeyRole.GRANT ? "grant" : "checkpoint";
}

/** The record of a change of a key. The actor is who asked for it, or "policy" where time brought it. */
export function keyChangedRecord({ key, change }: KeyStep["told"][number], actor: string, nowMs: number): AuditRecord {
  const role = roleWord(key.role);
  const publicKey = Buffer.from(key.public).toString("base64");
  return create(AuditRecordSchema, {
    version: 1,
    time: timestampFromMs(nowMs),
    actor,
    resource: `keys/${role}/${key.key_id}`,
    event: { case: "keyChanged", value: { role, keyId: key.key_id, change, publicKey } },
  });
}
