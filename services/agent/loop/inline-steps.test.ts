import { afterEach, describe, expect, it, vi } from "vitest";
import { createInlineSteps } from "./inline-steps.ts";

describe("inline steps", () => {
  afterEach(() => void vi.useRealTimers());

  it("give what comes before it is waited for, once", async () => {
    const steps = createInlineSteps();
    steps.deliver("call/1", true);
    steps.deliver("call/1", false);
    expect(await steps.answer([{ name: "call/0" }, { name: "call/1" }])).toEqual({ name: "call/1", value: true });
    expect(await steps.answer([{ name: "call/1", seconds: 0 }])).toEqual({ name: "call/1", value: undefined });
  });

  it("give the first of several that comes", async () => {
    const steps = createInlineSteps();
    const answer = steps.answer([{ name: "a" }, { name: "b", seconds: 60 }]);
    steps.deliver("other", 1);
    steps.deliver("b", { text: "yes" });
    expect(await answer).toEqual({ name: "b", value: { text: "yes" } });
    steps.deliver("a", 2);
    expect(await steps.answer([{ name: "a" }])).toEqual({ name: "a", value: 2 });
  });

  it("count a wait's time from when it was first waited for", async () => {
    vi.useFakeTimers();
    const steps = createInlineSteps();
    const waits = [{ name: "a", seconds: 8 }, { name: "b" }];
    const first = steps.answer(waits);
    await vi.advanceTimersByTimeAsync(4000);
    steps.deliver("b", true);
    expect(await first).toMatchObject({ name: "b" });
    const given = vi.fn();
    void steps.answer(waits).then(given);
    await vi.advanceTimersByTimeAsync(3999);
    expect(given).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(1);
    expect(given).toHaveBeenCalledWith({ name: "a", value: undefined });
  });

  it("return when the run is canceled, and wait again after that", async () => {
    const abort = new AbortController();
    const steps = createInlineSteps(abort.signal);
    const answer = steps.answer([{ name: "a" }]);
    abort.abort();
    expect(await answer).toBeUndefined();
    const next = steps.answer([{ name: "a" }]);
    steps.deliver("a", 1);
    expect(await next).toEqual({ name: "a", value: 1 });
  });
});
