import { afterAll, afterEach, expect, it } from "vitest";
import { CallState } from "../../gen/ts/reeve/call/v1/call_pb.ts";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { openTestLink } from "./testing/test-link.ts";
import { removeTestFolders, startTestPolicy, type TestPolicy } from "./testing/test-policy.ts";
import { testRequest } from "./testing/test-requests.ts";

let policy: TestPolicy | undefined;

async function start(): Promise<TestPolicy> {
  policy = await startTestPolicy();
  return policy;
}

afterEach(async () => {
  await policy?.stop();
});
afterAll(removeTestFolders);

it("answers many questions of one stream, each with its own decision", async () => {
  const { policy: client } = await start();
  const link = openTestLink(client);
  const tools = ["device.ping", "shell.eval", "weather:now"];
  const requests = Array.from({ length: 90 }, (_, i) => testRequest({ tool: tools[i % 3] ?? "", args: {} }));
  const answers = await Promise.all(requests.map((value) => link.ask({ case: "authorize", value })));
  const outcomes = answers.map((answer) => (answer.case === "decision" ? answer.value.outcome.case : answer.case));
  expect(outcomes).toEqual(requests.map((_, i) => ["permit", "hold", "denial"][i % 3]));
  const indexes = answers.map((answer) => (answer.case === "decision" ? answer.value.auditIndex : undefined));
  expect(new Set(indexes).size).toBe(90);
  expect(await link.end()).toHaveLength(90);
});

it("fails one question and answers the others", async () => {
  const { policy: client } = await start();
  const link = openTestLink(client);
  const bad = testRequest({ tool: "device.ping", argumentBytes: new TextEncoder().encode("{ }") });
  const [failed, nothing, unknown, fine] = await Promise.all([
    link.ask({ case: "authorize", value: bad }),
    link.ask(undefined as never),
    link.ask({ case: "awaitApproval", value: { approvalId: "apr-none" } }),
    link.ask({ case: "authorize", value: testRequest({ tool: "device.ping" }) }),
  ]);
  expect(failed.value).toMatchObject({
    error: { reason: ErrorReason.INVALID_INPUT, metadata: { field: "arguments" } },
  });
  expect(nothing.value).toMatchObject({
    error: { reason: ErrorReason.INVALID_INPUT, metadata: { field: "request" } },
  });
  expect(unknown.value).toMatchObject({ error: { reason: ErrorReason.NOT_FOUND } });
  expect(fine.case).toBe("decision");
  await link.end();
});

it("sends no answer to a question that was forgotten, and keeps its approval", async () => {
  const { policy: client, approvals } = await start();
  const link = openTestLink(client);
  const held = await link.ask({
    case: "authorize",
    value: testRequest({ tool: "shell.eval", args: { command: "ls" } }),
  });
  if (held.case !== "decision" || held.value.outcome.case !== "hold") throw new Error("not held");
  const { approvalId } = held.value.outcome.value;
  const forgotten = link.send({ case: "awaitApproval", value: { approvalId } });
  const waiting = link.ask({ case: "awaitApproval", value: { approvalId } });
  link.send({ case: "cancel", value: { requestId: forgotten } });
  // Answered after the forget was read, because questions are read in order.
  await link.ask({ case: "authorize", value: testRequest({ tool: "device.ping" }) });
  await approvals.deny({ approvalId });
  await waiting;
  expect(await link.end()).not.toContain(forgotten);
});

it("records the end of a call once, and refuses another end", async () => {
  const { policy: client, audit } = await start();
  const link = openTestLink(client);
  const outcome = { callId: "ended", state: CallState.SUCCEEDED, deviceId: "dev-1", tool: "exec", grantId: "g" };
  const first = await link.ask({ case: "recordOutcome", value: outcome });
  const again = await link.ask({ case: "recordOutcome", value: outcome });
  const other = await link.ask({ case: "recordOutcome", value: { ...outcome, state: CallState.FAILED } });
  expect(first.case).toBe("recorded");
  expect(again).toEqual(first);
  expect(other.value).toMatchObject({
    error: { reason: ErrorReason.CALL_ENDED, metadata: { call_id: "ended", state: "SUCCEEDED" } },
  });
  const { entries } = await audit.listRecords({ callId: "ended" });
  expect(entries).toHaveLength(1);
  expect(entries[0]?.record).toMatchObject({ actor: "registry", resource: "devices/dev-1/tools/exec" });
  await link.end();
});

it("ends when the service closes, although a request waits", async () => {
  const { policy: client, stop } = await start();
  const link = openTestLink(client);
  const held = await link.ask({
    case: "authorize",
    value: testRequest({ tool: "shell.eval", args: { command: "ls" } }),
  });
  if (held.case !== "decision" || held.value.outcome.case !== "hold") throw new Error("not held");
  const waiting = link.send({ case: "awaitApproval", value: { approvalId: held.value.outcome.value.approvalId } });
  await link.ask({ case: "authorize", value: testRequest({ tool: "device.ping" }) });
  await stop();
  expect(await link.end()).not.toContain(waiting);
});
