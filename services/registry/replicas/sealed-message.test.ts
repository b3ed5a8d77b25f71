import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import { ReplicaBodySchema } from "../../../gen/ts/reeve/cluster/v1/replica_pb.ts";
import { busKeysOf } from "./bus-key.ts";
import { MAX_AGE_MS, openMessage, sealMessage } from "./sealed-message.ts";

const NOW = 1_800_000_000_000;
const keys = busKeysOf(new Uint8Array(32).fill(1));
const facts = { keys, to: "rep-b", self: "rep-b", now: NOW };

function sealed(change: MessageInitShape<typeof ReplicaBodySchema> = {}): Uint8Array {
  const body = {
    from: "rep-a",
    to: "rep-b",
    session: "s",
    number: 1n,
    time: timestampFromMs(NOW),
    message: { case: "keepAlive" as const, value: {} },
    ...change,
  };
  return sealMessage(create(ReplicaBodySchema, body), keys);
}

test("opens what another replica has sealed", () => {
  expect(openMessage(sealed(), facts)).toMatchObject({ ok: true, body: { from: "rep-a", session: "s", number: 1n } });
});

test("takes a message that is as old as two clocks may be apart, and none that is older", () => {
  const bytes = sealed();
  expect(openMessage(bytes, { ...facts, now: NOW + MAX_AGE_MS })).toMatchObject({ ok: true });
  expect(openMessage(bytes, { ...facts, now: NOW + MAX_AGE_MS + 1 })).toMatchObject({ ok: false, why: "stale" });
});

test("refuses every message that differs in a bit", () => {
  const bytes = sealed();
  for (let at = 0; at < bytes.length; at++) {
    const changed = Uint8Array.from(bytes);
    changed[at] = (changed[at] ?? 0) ^ 0x40;
    expect(openMessage(changed, facts).ok).toBe(false);
  }
});

test("refuses a message of a key that is not one of the replicas'", () => {
  const others = busKeysOf(new Uint8Array(32).fill(2));
  expect(openMessage(sealed(), { ...facts, keys: others })).toEqual({ ok: false, why: "forged" });
  const none = { current: 2, keys: new Map([[2, new Uint8Array(32).fill(1)]]) };
  expect(openMessage(sealed(), { ...facts, keys: none })).toEqual({ ok: false, why: "forged" });
});

test("tells its own words from those for another", () => {
  expect(openMessage(sealed({ from: "rep-b" }), facts)).toEqual({ ok: false, why: "misdirected", own: true });
  expect(openMessage(sealed({ to: "rep-c" }), facts)).toEqual({ ok: false, why: "misdirected", own: false });
});
