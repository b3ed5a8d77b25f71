import { create } from "@bufbuild/protobuf";
import { afterEach, expect, test, vi } from "vitest";
import {
  CancelSessionSchema,
  CloseSessionSchema,
  KeepAliveSchema,
} from "../../../gen/ts/reeve/cluster/v1/replica_pb.ts";
import { createSession, type SessionMessage } from "./session.ts";

afterEach(() => void vi.useRealTimers());

const cancel: SessionMessage = { case: "cancel", value: create(CancelSessionSchema) };
const keepAlive: SessionMessage = { case: "keepAlive", value: create(KeepAliveSchema) };
const close = (why: string): SessionMessage => ({ case: "close", value: create(CloseSessionSchema, { why }) });

function open(send: (number: bigint, message: SessionMessage) => void = () => undefined) {
  const sent: [bigint, SessionMessage["case"]][] = [];
  const session = createSession({
    id: "s",
    peer: "rep-b",
    send(number, message) {
      send(number, message);
      sent.push([number, message.case]);
    },
    flush: () => Promise.resolve(),
    onEnd: () => undefined,
  });
  return { session, sent };
}

async function heard(session: ReturnType<typeof open>["session"]): Promise<SessionMessage["case"][]> {
  const cases: SessionMessage["case"][] = [];
  for await (const message of session.messages()) cases.push(message.case);
  return cases;
}

test("numbers what it says, and tells what it hears up to the end", async () => {
  const { session, sent } = open();
  session.send(cancel);
  session.take(1n, cancel);
  session.take(2n, keepAlive);
  session.take(3n, close(""));
  expect(await heard(session)).toEqual(["cancel"]);
  session.send(cancel);
  expect(sent).toEqual([[1n, "cancel"]]);
});

test("passes on why the other side has closed", async () => {
  const { session } = open();
  session.take(1n, close("the device is gone"));
  await expect(heard(session)).rejects.toThrow("the device is gone");
});

test("takes a number once", () => {
  const { session } = open();
  expect(session.take(1n, cancel)).toBe("taken");
  expect(session.take(1n, cancel)).toBe("replayed");
});

test("ends at a gap, since the bus has lost something, and says so", async () => {
  const { session, sent } = open();
  session.take(1n, cancel);
  session.take(3n, cancel);
  await expect(heard(session)).rejects.toThrow("lost a message");
  expect(sent).toEqual([[1n, "close"]]);
});

test("ends when a message cannot leave", async () => {
  const { session } = open(() => {
    throw new Error("the bus is down");
  });
  session.send(cancel);
  expect(session.over.aborted).toBe(true);
  await expect(heard(session)).rejects.toThrow("the bus is down");
});

test("shows that it is there, and gives up another that is silent", () => {
  vi.useFakeTimers({ toFake: ["performance"] });
  const { session, sent } = open();
  vi.advanceTimersByTime(1000);
  session.beat(1000);
  expect(sent).toEqual([[1n, "keepAlive"]]);
  vi.advanceTimersByTime(2500);
  session.take(1n, keepAlive);
  vi.advanceTimersByTime(3900);
  session.beat(1000);
  expect(session.over.aborted).toBe(false);
  vi.advanceTimersByTime(200);
  session.beat(1000);
  expect(session.over.aborted).toBe(true);
});
