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

test("lets nobody in who has left already", async () => {
  const slots = createSlots(1);
  expect(await slots.wait(AbortSignal.abort())).toBe(false);
  expect(slots.tryTake()).toBe(true);
});
