import { create, toBinary } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  AuditRecordSchema,
  type DeviceIdentity,
  DeviceIdentityChange,
  DeviceIdentitySchema,
} from "../../../gen/ts/reeve/audit/v1/record_pb.ts";
import { invalidField, missingField } from "../../../lib/fault/invalid-input.ts";
import { sha256Hex } from "../../../lib/sign/canonical.ts";
import { prepared } from "../../../lib/store/prepared.ts";
import type { RecordedWrites } from "../storage/recorded-writes.ts";
import type { PolicyDatabase, PolicyTables } from "../storage/tables.ts";
import type { AuditLog } from "./log.ts";

/** Writes down what became of devices' identities. */
export interface DeviceChangeRecorder {
  /**
   * Appends the record of a change and returns its index. The same change again returns the same index. Throws
   * INVALID_INPUT where the change has no id, or its id was used for another one.
   */
  record(change: DeviceIdentity, actor: string): Promise<number>;
}

/** Records changes in the log and, by their ids, in the table device_changes. */
export function createDeviceChangeRecorder(options: {
  db: PolicyDatabase;
  writes: RecordedWrites;
  log: AuditLog;
  now: () => number;
}): DeviceChangeRecorder {
  const { db, writes, log, now } = options;
  const select = prepared((p: { changeId: string }) =>
    db.selectFrom("device_changes").selectAll().where("change_id", "=", p.changeId),
  );
  const insert = prepared((p: PolicyTables["device_changes"]) =>
    db.insertInto("device_changes").values({ change_id: p.change_id, digest: p.digest, idx: p.idx }),
  );
  return {
    async record(change, actor) {
      const { changeId } = change;
      if (changeId === "") throw missingField("changeId");
      if (change.change === DeviceIdentityChange.UNSPECIFIED) throw missingField("change");
      const digest = sha256Hex(toBinary(DeviceIdentitySchema, change));
      return writes.write(async (trx) => {
        const known = await select.first(trx, { changeId });
        if (known && known.digest !== digest) throw invalidField("changeId", "unique", "was used for another change");
        if (known) return known.idx;
        const idx = await log.append(trx, changeRecord(change, actor, now()), "elsewhere");
        await insert.run(trx, { change_id: changeId, digest, idx });
        return idx;
      });
    },
  };
}

function changeRecord(change: DeviceIdentity, asker: string, nowMs: number) {
  const { actor, deviceId, enrollmentId } = change;
  return create(AuditRecordSchema, {
    version: 1,
    time: timestampFromMs(nowMs),
    actor: actor === "" ? asker : actor,
    resource: deviceId === "" ? `enrollments/${enrollmentId}` : `devices/${deviceId}`,
    event: { case: "deviceIdentity", value: change },
  });
}
