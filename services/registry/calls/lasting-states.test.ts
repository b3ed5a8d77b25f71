import { create } from "@bufbuild/protobuf";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { type Call, CallSchema, CallState } from "../../../gen/ts/reeve/call/v1/call_pb.ts";
import { createLastingStates } from "./lasting-states.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test("writes what lasts, once, and nothing of a call that has ended", () => {
  const written: Call[] = [];
  const note = createLastingStates((call) => written.push(call));
  const [long, short] = ["long", "short"].map((id) => create(CallSchema, { id, state: CallState.DISPATCHED }));
  if (long === undefined || short === undefined) throw new Error("two calls were made");
  note(long);
  note(long);
  note(short);
  short.state = CallState.SUCCEEDED;
  expect(written).toEqual([]);
  vi.runAllTimers();
  expect(written).toEqual([long]);
  note(short);
  vi.runAllTimers();
  expect(written).toEqual([long]);
});
