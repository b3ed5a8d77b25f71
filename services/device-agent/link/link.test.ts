import { expect, test } from "vitest";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { ExecutionOutcome } from "../../../gen/ts/reeve/device/v1/receipt_pb.ts";
import { sha256Hex } from "../../../lib/sign/canonical.ts";
import { argumentBytes } from "../testing/grants.ts";
import { openTestAgent } from "../testing/test-agent.ts";
import { openTestLink } from "../testing/test-link.ts";

const ping = { tool: "device.ping", args: { text: "hello" } };

test("says who the device is before anything else", async () => {
  await using device = await openTestAgent();
  const link = openTestLink(device.client);
  link.end();
  const events = await link.rest();
  expect(events.map(({ event }) => event.case)).toEqual(["hello"]);
  const hello = events[0]?.event;
  const envelope = hello?.case === "hello" ? hello.value.manifest : undefined;
  expect(sha256Hex(envelope?.payload ?? "")).toBe(device.agent.manifest().digest);
});

test("answers every call that was asked for before it ends", async () => {
  await using device = await openTestAgent();
  const callIds = Array.from({ length: 300 }, (_, index) => `call-${index}`);
  const starts = await Promise.all(callIds.map((callId) => device.grants.start({ ...ping, callId })));
  const link = openTestLink(device.client);
  link.send(...starts.map((value) => ({ case: "execute" as const, value })));
  link.end();
  const ends = (await link.rest()).flatMap(({ event }) => (event.case === "finished" ? [event.value] : []));
  expect(ends.map(({ callId }) => callId).sort()).toEqual(callIds.sort());
  expect(ends.every(({ outcome }) => outcome === ExecutionOutcome.SUCCEEDED)).toBe(true);
});

test("sends output in order, numbered without gaps, before the end", async () => {
  await using device = await openTestAgent();
  const link = openTestLink(device.client);
  const args = { argv: ["seq", "1", "50000"] };
  link.send({ case: "execute", value: await device.grants.start({ tool: "exec", args }) });
  link.end();
  const events = (await link.rest()).slice(1);
  const outputs = events.flatMap(({ event }) => (event.case === "output" ? [event.value] : []));
  expect(outputs.map(({ sequence }) => sequence)).toEqual(outputs.map((_, index) => index));
  expect(outputs.every(({ data }) => data.length <= 64 * 1024)).toBe(true);
  const lines = Buffer.concat(outputs.map(({ data }) => data))
    .toString()
    .trim()
    .split("\n");
  expect(lines).toEqual(Array.from({ length: 50_000 }, (_, index) => String(index + 1)));
  expect(events.at(-1)?.event.case).toBe("finished");
});

test("a call outlives the link it came on, and the next one receives its end", async () => {
  await using device = await openTestAgent();
  const waiting = { argv: ["sh", "-c", "echo ready; until [ -e go ]; do sleep 0.02; done; echo gone"] };
  const start = await device.grants.start({ tool: "exec", args: waiting, callId: "call-1" });
  const first = openTestLink(device.client);
  first.send({ case: "execute", value: start });
  await first.next("output");
  await first.leave();
  const others = [openTestLink(device.client), openTestLink(device.client)];
  const argsDigest = sha256Hex(argumentBytes({ tool: "exec", args: waiting }));
  others[0]?.send({ case: "execute", value: start });
  others[1]?.send({ case: "reconcile", value: { callId: "call-1", tool: "exec", argsDigest } });
  for (const other of others) await other.next("hello");
  await device.execute("fs.write", { path: `${device.work}/go` });
  const ends = await Promise.all(others.map((other) => other.next("finished")));
  expect(ends[0]).toMatchObject({ outcome: ExecutionOutcome.SUCCEEDED });
  expect(ends[1]).toEqual(ends[0]);
  for (const other of others) await other.leave();
});

test("a refused start does not disturb the link", async () => {
  await using device = await openTestAgent();
  const link = openTestLink(device.client);
  const forged = await device.grants.start({ ...ping, callId: "call-1" }, { deviceId: "dev-ffffffffffffffff" });
  link.send({ case: "execute", value: forged });
  expect(await link.next("finished")).toMatchObject({
    outcome: ExecutionOutcome.REFUSED,
    error: { reason: ErrorReason.GRANT_WRONG_DEVICE },
  });
  link.send({ case: "execute", value: await device.grants.start({ ...ping, callId: "call-1" }) });
  expect(await link.next("finished")).toMatchObject({ callId: "call-1", outcome: ExecutionOutcome.SUCCEEDED });
  await link.leave();
});

test("a reconciled call is reported and never starts", async () => {
  await using device = await openTestAgent();
  const link = openTestLink(device.client);
  const argsDigest = sha256Hex(argumentBytes(ping));
  link.send({ case: "reconcile", value: { callId: "call-1", tool: ping.tool, argsDigest } });
  const reconciled = await link.next("finished");
  expect(reconciled).toMatchObject({
    outcome: ExecutionOutcome.NOT_STARTED,
    error: { reason: ErrorReason.NOT_STARTED },
  });
  link.send({ case: "execute", value: await device.grants.start({ ...ping, callId: "call-1" }) });
  expect(await link.next("finished")).toEqual(reconciled);
  await link.leave();
});
