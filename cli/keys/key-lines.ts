import type { Timestamp } from "@bufbuild/protobuf/wkt";
import type { Authority } from "../../gen/ts/reeve/enrollment/v1/enrollment_service_pb.ts";
import { type Key, KeyRoleSchema, KeyState, KeyStateSchema } from "../../gen/ts/reeve/key/v1/key_service_pb.ts";
import { enumName } from "../print/enum-name.ts";
import { type TableOptions, table } from "../print/table.ts";
import { timeText } from "../print/time.ts";

const COLUMNS = ["ROLE", "ID", "STATE", "MADE", "SIGNS FROM", "TRUSTED UNTIL"];

/** The keys of policy, then the authorities that sign certificates, as a table. */
export function keysTable(keys: readonly Key[], authorities: readonly Authority[], options: TableOptions): string {
  return table(COLUMNS, [...keys.map(keyCells), ...authorities.map(authorityCells)], options);
}

function keyCells({ role, id, state, createTime, signTime, trustEndTime }: Key): string[] {
  // What a retired checkpoint key has signed is verified with it for as long as there is a log.
  const times = [createTime, signTime, state === KeyState.ACTIVE ? undefined : trustEndTime];
  return [enumName(KeyRoleSchema, role), id, enumName(KeyStateSchema, state), ...times.map(shown)];
}

function authorityCells({ id, signs, createTime, trustEndTime }: Authority): string[] {
  const times = [createTime, createTime, trustEndTime];
  return ["ca", id.slice(0, 16), signs ? "active" : "retiring", ...times.map(shown)];
}

function shown(time: Timestamp | undefined): string {
  return time === undefined ? "" : timeText(time);
}
