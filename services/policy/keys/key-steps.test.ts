import { expect, it } from "vitest";
import { KeyChangeSchema } from "../../../gen/ts/reeve/audit/v1/record_pb.ts";
import { KeyRole, KeyState } from "../../../gen/ts/reeve/key/v1/key_service_pb.ts";
import { valueName } from "../facts/facts.ts";
import { dueStep, type KeyStep, MAX_VALID, rotation, validKeys } from "./key-steps.ts";
import type { KeyRow } from "./key-store.ts";

const { GRANT, CHECKPOINT } = KeyRole;

function key(id: string, role: KeyRole, more: Partial<KeyRow> = {}): KeyRow {
  const times = { create_ms: 0, sign_ms: 0, end_ms: null };
  const row = {
    key_id: id,
    role,
    state: KeyState.ACTIVE,
    name: "",
    public: new Uint8Array(32),
    sealed: new Uint8Array(1),
  };
  return { ...row, ...times, ...more };
}

const first = [key("g1", GRANT), key("c1", CHECKPOINT)];

/** Makes a change and everything that is due at a time. */
function live(rows: readonly KeyRow[], step: KeyStep | string | undefined, nowMs: number): [KeyRow[], string[]] {
  if (typeof step === "string") throw new Error(step);
  if (step === undefined) return [[...rows], []];
  const recorded = step.recorded.map(
    ({ key: { key_id }, change }) => `${key_id} ${valueName(KeyChangeSchema, change)}`,
  );
  const after = [...rows.filter((row) => row.role !== step.role), ...step.after];
  const [later, more] = live(after, dueStep(after, nowMs), nowMs);
  return [later, [...recorded, ...more]];
}

function valid(rows: readonly KeyRow[], role: KeyRole): string[] {
  return validKeys(rows, role).map(({ key_id }) => key_id);
}

it("announces a grant key to devices first, lets it sign from half of the overlap on, and retires the old one at its end", () => {
  const [recorded, made] = live(first, rotation(first, key("g2", GRANT), 1000, 100), 1000);
  expect([made, valid(recorded, GRANT)]).toEqual([["g2 made"], ["g1", "g2"]]);
  expect(dueStep(recorded, 1049)).toBeUndefined();
  const [signing, active] = live(recorded, dueStep(recorded, 1050), 1050);
  expect([active, valid(signing, GRANT)]).toEqual([["g2 active"], ["g2", "g1"]]);
  expect(dueStep(signing, 1099)).toBeUndefined();
  const [over, retired] = live(signing, dueStep(signing, 1100), 1100);
  expect([retired, valid(over, GRANT)]).toEqual([["g1 retired"], ["g2"]]);
  expect(over.find(({ key_id }) => key_id === "g1")?.sealed).toBeNull();
  expect(valid(over, CHECKPOINT)).toEqual(["c1"]);
});

it("lets both checkpoint keys sign during the overlap", () => {
  const [both, made] = live(first, rotation(first, key("c2", CHECKPOINT), 1000, 100), 1000);
  expect([made, valid(both, CHECKPOINT)]).toEqual([
    ["c2 made", "c2 active"],
    ["c2", "c1"],
  ]);
  expect(both.filter(({ role, state }) => role === CHECKPOINT && state === KeyState.ACTIVE)).toHaveLength(2);
  const [over, retired] = live(both, dueStep(both, 1100), 1100);
  expect([retired, valid(over, CHECKPOINT)]).toEqual([["c1 retired"], ["c2"]]);
});

it("makes every change that was due while policy was stopped, in order", () => {
  const [recorded] = live(first, rotation(first, key("g2", GRANT), 1000, 100), 1000);
  const [over, changes] = live(recorded, dueStep(recorded, 9999), 9999);
  expect(changes).toEqual(["g2 active", "g1 retired"]);
  expect(valid(over, GRANT)).toEqual(["g2"]);
});

it("refuses a second rotation while the new grant key does not sign yet, and takes it afterwards", () => {
  const [recorded] = live(first, rotation(first, key("g2", GRANT), 1000, 100), 1000);
  expect(rotation(recorded, key("g3", GRANT), 1010, 100)).toContain("does not sign yet");
  const [signing] = live(recorded, dueStep(recorded, 1050), 1050);
  const [three] = live(signing, rotation(signing, key("g3", GRANT), 1060, 100), 1060);
  expect(valid(three, GRANT)).toEqual(["g2", "g3", "g1"]);
  const [over] = live(three, dueStep(three, 1160), 1160);
  expect(valid(over, GRANT)).toEqual(["g3"]);
});

it("keeps the number of keys that sign together small", () => {
  let rows: KeyRow[] = first;
  for (let i = 2; i <= MAX_VALID; i++) [rows] = live(rows, rotation(rows, key(`c${i}`, CHECKPOINT), 1000, 1e6), 1000);
  expect(rotation(rows, key("one-more", CHECKPOINT), 1000, 1e6)).toContain("are valid already");
});

it("never retires the last key that signs", () => {
  const rows = [key("g1", GRANT, { end_ms: 5 }), key("c1", CHECKPOINT)];
  expect(dueStep(rows, 1000)).toBeUndefined();
});
