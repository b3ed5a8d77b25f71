import { expect, test } from "vitest";
import { createSlots } from "./slots.ts";

const never = new AbortController().signal;

test("gives out as many places as there are", () => {
  const slots = createSlots(2);
  expect([slots.tryTake(), slots.tryTake(), slots.tryTake()]).toEqual([true, true, false]);
  slots.release();
  expect(slots.tryTake()).toBe(true);
});

test("serves those who wait in the order they came, before anybody new", async () => {
  const slots = createSlots(1);
  slots.tryTake();
  const order: string[] = [];
  const first = slots.wait(never).then(() => order.push("first"));
  const second = slots.wait(never).then(() => order.push("second"));
  slots.release();
  expect(slots.tryTake()).toBe(false);
  await first;
  slots.release();
  await second;
  expect(order).toEqual(["first", "second"]);
});

test("lets one leave the queue, and the next take its turn", async () => {
  const slots = createSlots(1);
  slots.tryTake();
  const leaving = new AbortController();
  const first = slots.wait(leaving.signal);
  const second = slots.wait(never);
  leaving.abort();
  expect(await first).toBe(false);
  slots.release();
  expect(await second).toBe(true);
});

test("gives no place to a caller that has left already", async () => {
  const slots = createSlots(1);
  expect(await slots.wait(AbortSignal.abort())).toBe(false);
  expect(slots.tryTake()).toBe(true);
});

test("keeps places for operators that others do not get, however long they wait", async () => {
  const slots = createSlots(2, 1);
  expect([slots.tryTake(), slots.tryTake(), slots.tryTake()]).toEqual([true, true, false]);
  expect(slots.tryTake("operator")).toBe(true);
  expect(slots.tryTake("operator")).toBe(false);
  const order: string[] = [];
  const other = slots.wait(never).then(() => order.push("other"));
  const operator = slots.wait(never, "operator").then(() => order.push("operator"));
  slots.release("operator");
  await operator;
  // The place in reserve is free again, and still not the other's.
  slots.release("operator");
  expect(order).toEqual(["operator"]);
  slots.release();
  await other;
  expect(order).toEqual(["operator", "other"]);
});

test("operators use the places of all while there are any", () => {
  const slots = createSlots(2, 1);
  expect([slots.tryTake("operator"), slots.tryTake("operator"), slots.tryTake()]).toEqual([true, true, true]);
  expect([slots.tryTake("operator"), slots.tryTake()]).toEqual([false, false]);
  slots.release("operator");
  expect([slots.tryTake(), slots.tryTake("operator")]).toEqual([true, false]);
});
