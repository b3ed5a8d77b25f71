import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { CallState } from "../../../gen/ts/reeve/call/v1/call_pb.ts";
import { isEnd, type LifecycleEvent, next, OCCURRENCES, storedBefore } from "./lifecycle.ts";
import { stateName } from "./state.ts";

const STATES = Object.values(CallState);
const EVENTS: LifecycleEvent[] = [...OCCURRENCES, ...STATES.map((end) => ({ end }))];

/** Every legal step of a call that can wait for its device, and of one that cannot. What is not here is illegal. */
const QUEUEABLE = {
  RECEIVED: { permit: "PERMITTED", defer: "QUEUED", hold: "HELD", resume: "RECEIVED" },
  HELD: { permit: "PERMITTED", defer: "QUEUED", hold: "HELD", resume: "HELD" },
  QUEUED: { permit: "PERMITTED", defer: "QUEUED", hold: "HELD", resume: "QUEUED" },
  PERMITTED: { permit: "PERMITTED", defer: "QUEUED", hold: "HELD", dispatch: "DISPATCHED", resume: "PERMITTED" },
  DISPATCHED: { permit: "PERMITTED", defer: "QUEUED", hold: "HELD", return: "QUEUED", resume: "DISPATCHED" },
};
const DIRECT = {
  RECEIVED: { permit: "PERMITTED", hold: "HELD", resume: "RECEIVED" },
  HELD: { permit: "PERMITTED", hold: "HELD", resume: "HELD" },
  QUEUED: { resume: "QUEUED" },
  PERMITTED: { dispatch: "DISPATCHED", resume: "PERMITTED" },
  DISPATCHED: { resume: "DISPATCHED" },
};
const ANY_END = ["SUCCEEDED", "FAILED", "TIMED_OUT", "CANCELED", "DENIED", "EXPIRED", "UNKNOWN"];
const AFTER_SENDING = ["SUCCEEDED", "FAILED", "TIMED_OUT", "CANCELED", "UNKNOWN"];

describe.each([
  ["a call that can wait for its device", true, QUEUEABLE as Record<string, Record<string, string>>],
  ["a call that cannot", false, DIRECT as Record<string, Record<string, string>>],
])("%s", (_, queueable, legal) => {
  test.each(STATES.map((state) => [stateName(state), state] as const))("in %s", (name, state) => {
    for (const event of EVENTS) {
      const found = next(state, event, { queueable });
      if (typeof event === "string") {
        expect([event, found && stateName(found.state)]).toEqual([event, legal[name]?.[event]]);
        continue;
      }
      const isSent = name === "PERMITTED" || name === "DISPATCHED";
      const ends = legal[name] === undefined ? [] : isSent && !queueable ? AFTER_SENDING : ANY_END;
      const end = stateName(event.end);
      expect([end, found && stateName(found.state)]).toEqual([end, ends.includes(end) ? end : undefined]);
    }
  });
});

test("a step is written before anything is done in its state, where losing it would lose what was decided", () => {
  for (const from of [CallState.RECEIVED, CallState.HELD, CallState.QUEUED]) {
    for (const event of ["hold", "defer"] as const)
      expect(next(from, event, { queueable: true })?.write).toBe("before");
  }
  for (const queueable of [true, false]) expect(next(CallState.HELD, "permit", { queueable })?.write).toBe("before");
  expect(next(CallState.RECEIVED, "permit", { queueable: true })?.write).toBe("before");
});

test("a stored state is only written over by one that it leads to", () => {
  const before = (state: CallState) => storedBefore(state).map(stateName).sort();
  const open = ["DISPATCHED", "HELD", "PERMITTED", "QUEUED", "RECEIVED"];
  expect(before(CallState.RECEIVED)).toEqual(["RECEIVED"]);
  expect(before(CallState.DISPATCHED)).toEqual(open);
  for (const state of STATES) {
    expect(storedBefore(state).some(isEnd)).toBe(false);
    if (isEnd(state)) expect(before(state)).toEqual(open);
  }
});

test("nothing but the lifecycle's driver and the store writes a state", () => {
  const root = join(import.meta.dirname, "..");
  const writers = readdirSync(root, { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".ts") && !file.endsWith(".test.ts"))
    .filter((file) =>
      /\bcall\.state\s*=[^=]|updateTable\("calls"\)[^;]*\bstate:|update calls\s+set\s+state/s.test(
        readFileSync(join(root, file), "utf8"),
      ),
    );
  expect(writers).toEqual([join("calls", "call-statements.ts")]);
  const movers = readdirSync(root, { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".ts") && !file.endsWith(".test.ts"))
    .filter((file) =>
      /\.(advance|replace)\(\{|\blive\.(advance|replace)\(/.test(readFileSync(join(root, file), "utf8")),
    );
  expect(movers.sort()).toEqual([join("calls", "finish.ts"), join("calls", "run.ts")]);
});
