import { SdkError, SdkErrorCode } from "@modelcontextprotocol/server";
import { expect, test } from "vitest";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { fault } from "../fault/fault.ts";
import { canceledByDeparture, canceledByMessage, createCancelations } from "./cancelations.ts";

const cancel = (requestId: unknown) => ({ method: "notifications/cancelled", params: { requestId } as never });

test("a client cancels its own request, by the id that it gave", () => {
  const cancelations = createCancelations();
  const mine = cancelations.open("a", 1);
  const others = [cancelations.open("b", 1), cancelations.open("a", 2), cancelations.open("a", "1")];
  cancelations.take("a", cancel(1));
  expect(mine.signal.aborted).toBe(true);
  expect(others.map(({ signal }) => signal.aborted)).toEqual([false, false, false]);
});

test("a request that was answered is canceled no more, and one of the same id after it is", () => {
  const cancelations = createCancelations();
  const first = cancelations.open("a", 1);
  first.release();
  cancelations.take("a", cancel(1));
  expect(first.signal.aborted).toBe(false);
  const second = cancelations.open("a", 1);
  first.release();
  cancelations.take("a", cancel(1));
  expect(second.signal.aborted).toBe(true);
});

test.each([
  null,
  [],
  "notifications/cancelled",
  { method: "tools/call", params: { requestId: 1 } },
  { method: "notifications/cancelled" },
  { method: "notifications/cancelled", params: [1] },
])("nothing else cancels: %j", (message) => {
  const cancelations = createCancelations();
  const { signal } = cancelations.open("a", 1);
  cancelations.take("a", message as never);
  expect(signal.aborted).toBe(false);
});

test("a connection that is closed cancels nothing where only a message does", () => {
  const [closed, canceled] = [new AbortController(), new AbortController()];
  const signals = [canceledByMessage(closed.signal), canceledByMessage(canceled.signal)].map(({ signal }) => signal);
  closed.abort(new SdkError(SdkErrorCode.ConnectionClosed, "closed"));
  canceled.abort("the user said stop");
  expect(signals.map(({ aborted }) => aborted)).toEqual([false, true]);
});

test("a client that leaves cancels where that means so, and a server that ends does not", () => {
  const [left, ended] = [new AbortController(), new AbortController()];
  const signals = [left, ended].map((one) => canceledByDeparture(one.signal).signal);
  left.abort();
  ended.abort(fault(ErrorReason.NOT_READY));
  expect(signals.map(({ aborted }) => aborted)).toEqual([true, false]);
});
