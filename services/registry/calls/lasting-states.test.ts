import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { CallState } from "../../../gen/ts/reeve/call/v1/call_pb.ts";
import { testCall } from "../../../testkit/test-call.ts";
import type { GovernedCall } from "./governed-call.ts";
import { createLastingStates } from "./lasting-states.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test("writes what lasts, once, and nothing of a call that has ended", () => {
  const written: GovernedCall[] = [];
  const note = createLastingStates((call) => written.push(call));
  const [long, short] = ["long", "short"].map((id) => testCall({ id, state: CallState.DISPATCHED }));
  if (long === undefined || short === undefined) throw new Error("two calls were made");
  note(long);
  note(long);
  note(short);
  short.status.state = CallState.SUCCEEDED;
  expect(written).toEqual([]);
  vi.runAllTimers();
  expect(written).toEqual([long]);
  note(short);
  vi.runAllTimers();
  expect(written).toEqual([long]);
});
