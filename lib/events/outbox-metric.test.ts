import { Gauge, Registry } from "prom-client";
import { beforeEach, expect, test, vi } from "vitest";
import { measureOutbox } from "./outbox-metric.ts";

let registry: Registry;
let pending: ReturnType<typeof vi.fn<() => Promise<number>>>;
beforeEach(() => {
  registry = new Registry();
  new Gauge({ name: "other", help: "another metric", registers: [registry] }).set(7);
  pending = vi.fn<() => Promise<number>>();
  measureOutbox(registry, pending, 20);
});

const value = async (name = "reeve_outbox_waiting") =>
  Number(new RegExp(`^${name} (\\S+)$`, "m").exec(await registry.metrics())?.[1]);

test("reports what the outbox holds, asked each time", async () => {
  pending.mockResolvedValueOnce(3).mockResolvedValueOnce(5);
  expect(await value()).toBe(3);
  expect(await value()).toBe(5);
});

test("keeps the last value, and all other metrics, while the database is unreachable", async () => {
  pending.mockResolvedValueOnce(3).mockRejectedValue(new Error("the database is unreachable"));
  await value();
  expect(await value()).toBe(3);
  expect(await value("other")).toBe(7);
});

test("does not wait for a database that hangs, nor asks it twice, and goes on when it answers", async () => {
  const late = Promise.withResolvers<number>();
  pending.mockReturnValueOnce(late.promise).mockResolvedValueOnce(2);
  expect(await value()).toBeNaN();
  expect(await value("other")).toBe(7);
  expect(pending).toHaveBeenCalledTimes(1);
  late.resolve(9);
  expect(await value()).toBe(9);
  expect(await value()).toBe(2);
});

test("counts nothing where there is no place for it", () => {
  expect(() => measureOutbox(undefined, pending)).not.toThrow();
});
