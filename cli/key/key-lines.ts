import type { Timestamp } from "@bufbuild/protobuf/wkt";
import type { Authority } from "../../gen/ts/reeve/enrollment/v1/authority_service_pb.ts";
import { type Key, KeyRoleSchema, KeyState, KeyStateSchema } from "../../gen/ts/reeve/key/v1/key_service_pb.ts";
import type { CommandContext } from "../command-context.ts";
import { enumName } from "../print/enum-name.ts";
import { listTable } from "../print/table.ts";
import { ageText, timeAndAge } from "../print/time.ts";

const COLUMNS = ["ROLE", "ID", "STATE", "MADE", "SIGNS", "TRUSTED UNTIL"];

/** The keys of policy, then the authorities of the device CA, as a table. */
export function keysTable(keys: readonly Key[], authorities: readonly Authority[], context: CommandContext): string {
  const age = (time: Timestamp | undefined) => ageText(time, context.now());
  const keyRow = ({ role, id, state, createTime, signTime, trustEndTime }: Key) => [
    enumName(KeyRoleSchema, role),
    id,
    enumName(KeyStateSchema, state),
    age(createTime),
    age(signTime),
    // What a retired checkpoint key has signed is verified with it for as long as there is a log.
    state === KeyState.ACTIVE ? "" : timeAndAge(trustEndTime, context.now()),
  ];
  const authorityRow = ({ id, signs, createTime, trustEndTime }: Authority) => [
    "device-ca",
    id.slice(0, 16),
    signs ? "active" : "retiring",
    age(createTime),
    age(createTime),
    timeAndAge(trustEndTime, context.now()),
  ];
  return listTable(COLUMNS, [...keys.map(keyRow), ...authorities.map(authorityRow)], context, { keep: ["ID"] });
}
