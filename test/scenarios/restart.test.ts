import { existsSync } from "node:fs";
import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { isEnd } from "../../client/call-progress.ts";
import { type CompleteCall, completeCall } from "../../client/complete-call.ts";
import { CallState } from "../../gen/ts/reeve/call/v1/call_pb.ts";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { LinkState } from "../../gen/ts/reeve/device/v1/device_pb.ts";
import { approveCall, pendingApproval } from "../../testkit/approvals.ts";
import { openCallStream, printedIn } from "../../testkit/call-stream.ts";
import { type Caller, callerOf } from "../../testkit/clients.ts";
import { type ControlPlane, startControlPlane } from "../../testkit/control-plane.ts";
import { eventually } from "../../testkit/eventually.ts";

let plane: ControlPlane;
let operator: Caller;
let agent: Caller;
/** For each test: a file that a call would make, and the call's id. */
let mark: string;
let callId: string;
let count = 0;
beforeAll(async () => {
  plane = await startControlPlane();
  operator = callerOf(plane, plane.tokens.operator);
  agent = callerOf(plane, plane.tokens.agent);
});
afterAll(() => plane.close());
beforeEach(() => {
  count += 1;
  callId = `restart-${count}`;
  mark = join(plane.work, callId);
});

test.each(["registry", "policy"] as const)(
  "a held call runs when it is approved after a crash of the %s",
  async (part) => {
    await hold();
    await plane.processes[part].kill();
    await plane.processes[part].start();
    await approveCall(operator, callId);
    expect((await ended()).status.state).toBe(CallState.SUCCEEDED);
    expect(existsSync(mark)).toBe(true);
  },
);

test("a held call runs when it was approved while the registry was gone", async () => {
  await hold();
  await plane.processes.registry.kill();
  await approveCall(operator, callId);
  expect(existsSync(mark)).toBe(false);
  await plane.processes.registry.start();
  expect((await ended()).status.state).toBe(CallState.SUCCEEDED);
  expect(existsSync(mark)).toBe(true);
});

test("a held call is denied when its approval was denied while the registry was gone", async () => {
  await hold();
  await plane.processes.registry.kill();
  const { id: approvalId } = await pendingApproval(operator, callId);
  await operator.approvals.deny({ approvalId, comment: "no" });
  await plane.processes.registry.start();
  expect((await ended()).status.state).toBe(CallState.DENIED);
  expect(existsSync(mark)).toBe(false);
});

test("a call that runs while the registry is gone learns with its true end", async () => {
  const stream = openCallStream(operator.registry);
  const script = `echo started; until [ -e ${mark} ]; do sleep 0.02; done; echo ended`;
  stream.call({ tool: "exec", params: { argv: ["bash", "-c", script] }, callId });
  await stream.next(printedIn);
  await plane.processes.registry.kill();
  await expect(stream.end()).rejects.toThrow();
  await plane.processes.registry.start();
  await writeFile(mark, "");
  expect(await ended()).toMatchObject({
    status: { state: CallState.SUCCEEDED, output: { stdout: "started\nended\n" } },
  });
});

test("a call whose device dies under it has an unknown end, and is not run again", async () => {
  const stream = openCallStream(operator.registry);
  // The program outlives its device agent, and goes on until its file is gone.
  const script = `echo run >> ${mark}; echo started; while [ -e ${mark} ]; do sleep 0.05; done`;
  stream.call({ tool: "exec", params: { argv: ["bash", "-c", script] }, callId });
  await stream.next(printedIn);
  await plane.processes.device.kill();
  await plane.processes.device.start();
  const call = await stream.ended(callId);
  await stream.end();
  expect(call).toMatchObject({ status: { state: CallState.UNKNOWN, error: { reason: ErrorReason.INTERRUPTED } } });
  expect(call.status.receipt).toBeDefined();
  expect(await readFile(mark, "utf8")).toBe("run\n");
  await rm(mark);
});

test("nothing runs while policy is gone, and its callers learn so", async () => {
  await plane.processes.policy.kill();
  const asked = { tool: "exec", params: { argv: ["touch", mark] } };
  const headers = { authorization: `Bearer ${plane.tokens.operator}`, "content-type": "application/json" };
  const [{ call }, response] = await Promise.all([
    operator.registry.callTool({ ...asked, callId }),
    fetch(`${plane.registry.url}/invoke`, { method: "POST", headers, body: JSON.stringify(asked) }),
  ]);
  expect(call).toMatchObject({
    status: { state: CallState.FAILED, error: { reason: ErrorReason.POLICY_UNAVAILABLE } },
  });
  expect(response.status).toBe(503);
  const health = () => fetch(`${plane.registry.url}/healthz`).then(async (one) => [one.status, await one.json()]);
  await eventually(async () => {
    expect(await health()).toEqual([503, { status: "NOT_SERVING", unavailable: ["policy"] }]);
  });
  expect((await fetch(`${plane.registry.url}/readyz`)).status).toBe(200);
  await plane.processes.policy.start();
  const after = await operator.registry.callTool({ tool: "exec", params: { argv: ["uname"] } });
  expect(after.call?.status?.state).toBe(CallState.SUCCEEDED);
  expect(await health()).toEqual([200, { status: "SERVING" }]);
  expect(existsSync(mark)).toBe(false);
});

test("the end of a call that ran while policy was gone gets into the log when it is back", async () => {
  const stream = openCallStream(operator.registry);
  const script = `echo started; until [ -e ${mark} ]; do sleep 0.02; done`;
  stream.call({ tool: "exec", params: { argv: ["bash", "-c", script] }, callId });
  await stream.next(printedIn);
  await plane.processes.policy.kill();
  await writeFile(mark, "");
  expect((await stream.ended(callId)).status.state).toBe(CallState.SUCCEEDED);
  await stream.end();
  await plane.processes.policy.start();
  await eventually(async () => {
    const { entries } = await operator.audit.listRecords({ callId });
    expect(entries.map(({ record }) => record?.event.case)).toEqual(["decided", "outcome"]);
  });
});

test("a call for a device that is gone fails without having run, and the device's absence shows", async () => {
  await plane.processes.device.kill();
  const { call } = await operator.registry.callTool({ tool: "exec", params: { argv: ["touch", mark] }, callId });
  expect(call).toMatchObject({ status: { state: CallState.FAILED, error: { reason: ErrorReason.DEVICE_OFFLINE } } });
  const { device } = await operator.registry.getDevice({ device: "this" });
  expect(device?.link).toBe(LinkState.OFFLINE);
  await plane.processes.device.start();
  await eventually(async () => {
    const now = await operator.registry.getDevice({ device: "this" });
    expect(now.device?.link).toBe(LinkState.ONLINE);
  });
  const after = await operator.registry.callTool({ tool: "exec", params: { argv: ["uname"] } });
  expect(after.call?.status?.state).toBe(CallState.SUCCEEDED);
  expect(existsSync(mark)).toBe(false);
});

/** A call of the agent that would make the mark, and waits for a person. */
async function hold(): Promise<void> {
  const request = { tool: "exec", params: { argv: ["touch", mark] }, callId, noWait: true };
  const { call } = await agent.registry.callTool(request);
  callId = call?.id ?? "";
}

/** The call when it has ended, asked for until the registry answers. */
function ended(): Promise<CompleteCall> {
  return eventually(async () => {
    const { call } = await operator.registry.getCall({ callId });
    if (call === undefined || !isEnd(completeCall(call).status.state)) throw new Error(`${callId} has not ended`);
    return completeCall(call);
  });
}
