import { KeyChange } from "../../../gen/ts/reeve/audit/v1/record_pb.ts";
import { KeyRole, KeyState } from "../../../gen/ts/reeve/key/v1/key_service_pb.ts";
import type { KeyRow } from "./key-store.ts";

/** One change of the keys of one role. */
export interface KeyStep {
  role: KeyRole;
  /** Every key of the role as it stands after the change. */
  after: readonly KeyRow[];
  /** The keys that are not as they were. */
  changed: readonly KeyRow[];
  /** The changes that the audit log records. */
  recorded: readonly { key: KeyRow; change: KeyChange }[];
}

const { NEXT, ACTIVE, RETIRING, RETIRED } = KeyState;

/** Keys of one role that are valid at the same time, at most: a checkpoint carries a signature of each. */
export const MAX_VALID = 6;

/**
 * Brings a new key in, to take the place of the one that signs. A grant key is announced to the devices first and signs from
 * half of the overlap on; a checkpoint key signs at once, beside the old one. The old key is retired when the overlap
 * ends. Returns why not, where the change before is not far enough.
 */
export function rotation(rows: readonly KeyRow[], made: KeyRow, nowMs: number, overlapMs: number): KeyStep | string {
  const role = made.role as KeyRole;
  const valid = rows.filter((row) => row.role === role && isValid(row));
  if (valid.some((row) => row.state === NEXT)) return "the new key of the last rotation does not sign yet";
  if (valid.length >= MAX_VALID) return `${MAX_VALID} keys are valid already`;
  const isGrant = role === KeyRole.GRANT;
  const added: KeyRow = {
    ...made,
    create_ms: nowMs,
    state: isGrant ? NEXT : ACTIVE,
    sign_ms: isGrant ? nowMs + Math.floor(overlapMs / 2) : nowMs,
    end_ms: null,
  };
  const ending = valid
    .filter((row) => row.state === ACTIVE && row.end_ms === null)
    .map((row) => ({ ...row, end_ms: nowMs + overlapMs }));
  const recorded: KeyStep["recorded"] = [
    { key: added, change: KeyChange.MADE },
    ...(isGrant ? [] : [{ key: added, change: KeyChange.ACTIVE }]),
  ];
  return { role, changed: [...ending, added], after: [...replace(rows, role, ending), added], recorded };
}

/** The next change that time has brought; undefined where there is none. Ask again after it was made. */
export function dueStep(rows: readonly KeyRow[], nowMs: number): KeyStep | undefined {
  const due = rows.find((row) => row.state === NEXT && row.sign_ms <= nowMs);
  if (due) return activation(rows, due);
  const over = rows.find((row) => row.end_ms !== null && row.end_ms <= nowMs && isOver(rows, row));
  if (!over) return undefined;
  const role = over.role as KeyRole;
  const retired = { ...over, state: RETIRED, sealed: null };
  return {
    role,
    changed: [retired],
    after: replace(rows, role, [retired]),
    recorded: [{ key: retired, change: KeyChange.RETIRED }],
  };
}

/** The keys of a role that are valid now, the one that signs first. */
export function validKeys(rows: readonly KeyRow[], role: KeyRole): KeyRow[] {
  const order: readonly number[] = [ACTIVE, NEXT, RETIRING];
  return rows
    .filter((row) => row.role === role && isValid(row))
    .sort((a, b) => order.indexOf(a.state) - order.indexOf(b.state) || b.sign_ms - a.sign_ms);
}

function activation(rows: readonly KeyRow[], due: KeyRow): KeyStep {
  const role = due.role as KeyRole;
  const active = { ...due, state: ACTIVE };
  const retiring = rows
    .filter((row) => row.role === role && row.state === ACTIVE)
    .map((row) => ({ ...row, state: RETIRING }));
  const changed = [active, ...retiring];
  return { role, changed, after: replace(rows, role, changed), recorded: [{ key: active, change: KeyChange.ACTIVE }] };
}

// The last key that signs is never retired, whatever its times say.
function isOver(rows: readonly KeyRow[], row: KeyRow): boolean {
  if (row.state === RETIRING) return true;
  return (
    row.state === ACTIVE && rows.some((other) => other.role === row.role && other.state === ACTIVE && other !== row)
  );
}

function isValid({ state }: KeyRow): boolean {
  return state === NEXT || state === ACTIVE || state === RETIRING;
}

function replace(rows: readonly KeyRow[], role: KeyRole, changed: readonly KeyRow[]): KeyRow[] {
  const byId = new Map(changed.map((row) => [row.key_id, row]));
  return rows.filter((row) => row.role === role).map((row) => byId.get(row.key_id) ?? row);
}
