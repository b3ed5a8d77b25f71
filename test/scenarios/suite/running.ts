import { existsSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { type CompleteCall, completeCall } from "../../../client/complete-call.ts";
import { type Approval, ApprovalState } from "../../../gen/ts/reeve/approval/v1/approval_pb.ts";
import { CallState } from "../../../gen/ts/reeve/call/v1/call_pb.ts";
import type { CallEvent } from "../../../gen/ts/reeve/call/v1/call_service_pb.ts";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { reasonOf } from "../../../lib/fault/fault.ts";
import { approveCall } from "../../../testkit/approvals.ts";
import { openCallStream, printedIn } from "../../../testkit/call-stream.ts";
import { eventually } from "../../../testkit/eventually.ts";
import { isRunning } from "../../../testkit/programs.ts";
import { callIn, endOf, type Scene } from "./scene.ts";

/** What holds while a call runs: canceling, repeating, live output. */
export function describeRunning(scene: () => Scene): void {
  test("a running call that is canceled ends with all its processes", async () => {
    const { operator, newCallId } = scene();
    const callId = newCallId();
    const stream = openCallStream(operator.registry);
    const argv = ["bash", "-c", "sleep 60 & echo $$ $!; wait"];
    stream.call({ tool: "exec", params: { argv }, callId });
    const pids = (await stream.next(printedIn)).trim().split(" ").map(Number);
    expect(pids).toHaveLength(2);
    expect(await Promise.all(pids.map(isRunning))).toEqual([true, true]);
    const call = callIn(await operator.registry.cancelCall({ callId }));
    expect(call).toMatchObject({ status: { state: CallState.CANCELED, error: { reason: ErrorReason.CANCELED } } });
    expect((await stream.ended(callId)).status.state).toBe(CallState.CANCELED);
    await stream.end();
    await expect.poll(() => Promise.all(pids.map(isRunning))).toEqual([false, false]);
  });

  test("a call can be canceled on the stream that it runs on", async () => {
    const { operator, newCallId } = scene();
    const callId = newCallId();
    const stream = openCallStream(operator.registry);
    stream.call({ tool: "exec", params: { argv: ["bash", "-c", "echo started; sleep 60"] }, callId });
    await stream.next(printedIn);
    stream.cancel(callId);
    expect((await stream.ended(callId)).status.state).toBe(CallState.CANCELED);
    await stream.end();
  });

  test("a held call that is canceled never runs, and cannot be approved any more", async () => {
    const { operator, agent, newFile } = scene();
    const file = newFile();
    const params = { argv: ["touch", file] };
    const held = callIn(await agent.registry.callTool({ tool: "exec", params, noWait: true }));
    const { id: callId } = held;
    const approvalId = held.status.approval?.id ?? "";
    expect(callIn(await agent.registry.cancelCall({ callId })).status.state).toBe(CallState.CANCELED);
    // Policy learns of the end a moment after the caller.
    const { spec, status } = await eventually(async () => {
      const { approval } = await operator.approvals.getApproval({ approvalId });
      expect(approval?.status?.state).toBe(ApprovalState.CANCELED);
      return approval as Approval;
    });
    expect(status?.comment).toBe("the call ended: CANCELED");
    const late = operator.approvals.approve({ approvalId, summaryDigest: spec?.summaryDigest ?? "" });
    expect(reasonOf(await late.catch((e: unknown) => e))).toBe(ErrorReason.APPROVAL_DECIDED);
    // Calls of one device start in order: had it been sent, it would have been started by now.
    await operator.registry.callTool({ tool: "exec", params: { argv: ["uname"] } });
    expect(callIn(await agent.registry.getCall({ callId })).status.state).toBe(CallState.CANCELED);
    expect(existsSync(file)).toBe(false);
  });

  test("a program that runs too long is killed with its children", async () => {
    const { operator, newFile } = scene();
    const file = newFile();
    const argv = ["bash", "-c", `sleep 60 & echo $! > ${file}; wait`];
    const call = callIn(await operator.registry.callTool({ tool: "exec", params: { argv, timeoutMs: 500 } }));
    expect(call).toMatchObject({ status: { state: CallState.TIMED_OUT, error: { reason: ErrorReason.TIMED_OUT } } });
    const child = Number(await readFile(file, "utf8"));
    await expect.poll(() => isRunning(child)).toBe(false);
  });

  test("the same call id again is the same call, and it ran once", async () => {
    const { operator, newFile, newCallId } = scene();
    const [file, callId] = [newFile(), newCallId()];
    const request = { tool: "exec", params: { argv: ["tee", "-a", file], stdin: "once\n" }, callId };
    const both = await Promise.all([operator.registry.callTool(request), operator.registry.callTool(request)]);
    const [first, second, third] = [...both, await operator.registry.callTool(request)].map(callIn);
    expect(first?.status.state).toBe(CallState.SUCCEEDED);
    expect(receiptOf(second)).toEqual(receiptOf(first));
    expect(receiptOf(third)).toEqual(receiptOf(first));
    expect(await readFile(file, "utf8")).toBe("once\n");
  });

  test("the same call id with other arguments or another tool is refused, and another caller has it for itself", async () => {
    const { operator, agent, newFile, newCallId } = scene();
    const [file, callId] = [newFile(), newCallId()];
    await operator.registry.callTool({ tool: "device.ping", params: { text: "a" }, callId });
    const others = [
      operator.registry.callTool({ tool: "device.ping", params: { text: "b" }, callId }),
      operator.registry.callTool({ tool: "exec", params: { argv: ["touch", file] }, callId }),
    ].map((other) => other.catch(reasonOf));
    for (const other of others) expect(await other).toBe(ErrorReason.CALL_ID_REUSED);
    const own = callIn(await agent.registry.callTool({ tool: "device.ping", params: { text: "b" }, callId }));
    expect(own).toMatchObject({ status: { state: CallState.SUCCEEDED, output: { text: "b" } } });
    expect(existsSync(file)).toBe(false);
  });

  test("output comes while the program runs, and all of it has come before the end", async () => {
    const { operator, newFile, newCallId } = scene();
    const [file, callId] = [newFile(), newCallId()];
    const stream = openCallStream(operator.registry);
    const script = `echo first; until [ -e ${file} ]; do sleep 0.02; done; printf 'second\\nthe last has no newline'`;
    stream.call({ tool: "exec", params: { argv: ["bash", "-c", script] }, callId });
    expect(await stream.next(printedIn)).toBe("first\n");
    await writeFile(file, "");
    const call = await stream.ended(callId);
    await stream.end();
    const printed = stream.seen
      .map(printedIn)
      .filter((text) => text !== undefined)
      .join("");
    expect(call.status.output?.stdout).toBe("first\nsecond\nthe last has no newline");
    expect(printed).toBe(call.status.output?.stdout);
    expectNumbered(stream.seen);
  });

  test("a program that floods its output is followed to its end, and nothing is left out", async () => {
    const { operator, newCallId } = scene();
    const callId = newCallId();
    const stream = openCallStream(operator.registry);
    const script = "line=$(printf 'x%.0s' {1..1000}); for n in {1..20000}; do echo $line; done; echo done";
    stream.call({ tool: "exec", params: { argv: ["bash", "-c", script] }, callId });
    const call = await stream.ended(callId);
    await stream.end();
    // What is kept of it is head and tail.
    expect(call).toMatchObject({ status: { state: CallState.SUCCEEDED, output: { truncated: true } } });
    expect(call.status.output?.stdout).toMatch(/bytes left out.*\ndone\n$/s);
    const printed = stream.seen.map((event) => printedIn(event) ?? "").join("");
    expect(printed.length).toBe(20_000 * 1001 + 5);
    expect(printed).toMatch(/^[xdone\n]*$/);
    expectNumbered(stream.seen);
  });

  test("a refusal on a stream names its call and ends no other", async () => {
    const { operator, newCallId } = scene();
    const [bad, good] = [newCallId(), newCallId()];
    const stream = openCallStream(operator.registry);
    stream.call({ tool: "exec", params: { argv: [] }, callId: bad });
    stream.call({ tool: "device.ping", params: { text: "still here" }, callId: good });
    expect((await stream.ended(good)).status.output).toEqual({ text: "still here" });
    const refusal = stream.seen.find(({ callId }) => callId === bad)?.event;
    expect(refusal).toMatchObject({ case: "refusal", value: { error: { reason: ErrorReason.INVALID_INPUT } } });
    await stream.end();
  });

  test("watching a call shows how it stands, what happens to it, and its end", async () => {
    const { operator, agent, newFile } = scene();
    const params = { argv: ["tee", newFile()], stdin: "seen live\n" };
    const { id: callId } = callIn(await agent.registry.callTool({ tool: "exec", params, noWait: true }));
    const states: CallState[] = [];
    let printed = "";
    for await (const { event } of agent.registry.watchCall({ callId })) {
      if (event === undefined) continue;
      printed += printedIn(event) ?? "";
      if (event.event.case !== "call") continue;
      states.push(completeCall(event.event.value).status.state);
      if (event.event.value.status?.state === CallState.HELD) await approveCall(operator, callId);
    }
    expect(states.at(0)).toBe(CallState.HELD);
    expect(states.at(-1)).toBe(CallState.SUCCEEDED);
    expect(states).toEqual([...states].sort((a, b) => a - b));
    expect(printed).toBe("seen live\n");
    expect((await endOf(agent, callId)).status.state).toBe(CallState.SUCCEEDED);
  });
}

function receiptOf(call: CompleteCall | undefined): Uint8Array | undefined {
  return call?.status.receipt?.statement;
}

function expectNumbered(events: readonly CallEvent[]): void {
  const numbers = events.flatMap(({ event }) => (event.case === "output" ? [event.value.sequence] : []));
  // What a chunk holds may come with a later one, once more shows that it is no part of a secret.
  expect(numbers).toEqual([...new Set(numbers)].sort((one, other) => one - other));
  expect(events.filter(({ event }) => event.case === "outputGap")).toEqual([]);
}
