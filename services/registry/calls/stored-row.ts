import { fromBinary, type JsonObject } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { Selectable } from "kysely";
import { CallSchema, CallState } from "../../../gen/ts/reeve/call/v1/call_pb.ts";
import { keptArguments } from "../../../lib/tool/cut.ts";
import type { RegistryTables } from "../tables.ts";
import type { Asked, Bodies } from "./bodies.ts";
import { type GovernedCall, governedCall } from "./governed-call.ts";

type CallRow = Selectable<RegistryTables["calls"]>;

/** The columns that a stored call is read from. */
export const STORED_COLUMNS = [
  "id",
  "call",
  "args",
  "shown",
  "result",
  "outcome_index",
  "bodies_delete_ms",
  "owner",
  "cancel_wanted",
] as const;

/** A row with what is needed to read the call in it. */
export type StoredRow = Pick<CallRow, (typeof STORED_COLUMNS)[number]>;

/** How long the arguments in a list may be, in UTF-16 code units: texts, and all of them as JSON. */
const LISTED = { texts: [1000, 100], total: 4096 };

/** A call as it is stored, with its purpose, output and error; without its arguments. Throws SealError. */
export function callIn(row: StoredRow, bodies: Bodies): GovernedCall {
  const call = skeletonIn(row);
  if (row.bodies_delete_ms !== null) return call;
  call.spec.purpose = askedIn(row, bodies).purpose;
  if (row.result !== null) Object.assign(call.status, bodies.openResult(row.id, row.result));
  return call;
}

/** A call for a list: with short arguments and without output. One whose bodies cannot be opened is listed without them. */
export function listedCallIn(row: StoredRow, bodies: Bodies): GovernedCall {
  const call = skeletonIn(row);
  try {
    const shown = shownIn(row, bodies);
    if (shown !== undefined) {
      call.spec.arguments = keptArguments(shown.arguments, LISTED);
      call.spec.purpose = shown.purpose;
    }
    if (row.result !== null && call.status.state !== CallState.SUCCEEDED) {
      const { output: _output, ...failure } = bodies.openResult(row.id, row.result);
      Object.assign(call.status, failure);
    }
  } catch {
    call.spec.arguments = { note: "[cannot be read]" };
  }
  return call;
}

/** The arguments as they may be shown. Undefined where they were deleted. */
export function shownIn(row: StoredRow, bodies: Bodies): { arguments: JsonObject; purpose: string } | undefined {
  if (row.bodies_delete_ms !== null) return undefined;
  const { args, purpose } =
    row.shown === null ? bodies.openAsked(row.id, row.args) : bodies.openShown(row.id, row.shown);
  return { arguments: JSON.parse(Buffer.from(args.buffer, args.byteOffset, args.byteLength).toString()), purpose };
}

/** The arguments as they are to be run; empty once the call has ended and its secrets were deleted. Throws SealError. */
export function argumentsIn(row: StoredRow, bodies: Bodies): Uint8Array {
  if (row.args.length === 0) return row.args;
  return bodies.openAsked(row.id, row.args).args;
}

function askedIn(row: StoredRow, bodies: Bodies): Asked {
  return row.shown === null ? bodies.openAsked(row.id, row.args) : bodies.openShown(row.id, row.shown);
}

function skeletonIn({ call: bytes, outcome_index, bodies_delete_ms }: StoredRow): GovernedCall {
  const call = governedCall(fromBinary(CallSchema, bytes));
  if (outcome_index !== null) call.status.outcomeAuditIndex = BigInt(outcome_index);
  if (bodies_delete_ms !== null) call.status.bodiesDeleteTime = timestampFromMs(bodies_delete_ms);
  return call;
}
