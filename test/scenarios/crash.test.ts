import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, expect, test } from "vitest";
import { isEnd } from "../../client/call-progress.ts";
import { type CompleteCall, completeCall } from "../../client/complete-call.ts";
import { CallState } from "../../gen/ts/reeve/call/v1/call_pb.ts";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { openLogFile } from "../../lib/audit-verify/log-source.ts";
import { verifyLog } from "../../lib/audit-verify/verify.ts";
import { isRetryable, reasonOf } from "../../lib/fault/fault.ts";
import { type Caller, callerOf } from "../../testkit/clients.ts";
import { type ControlPlane, startControlPlane } from "../../testkit/control-plane.ts";
import { eventually } from "../../testkit/eventually.ts";

/** How many calls are in flight around the crash. REEVE_CRASH_CALLS makes it more. */
const CALLS = Number(process.env.REEVE_CRASH_CALLS ?? 200);

/** How long to wait for every call to reach its end after the restart, in milliseconds. */
const ENDING_MS = 60_000;

let plane: ControlPlane | undefined;
afterEach(() => plane?.close());

test.each(["device", "policy", "registry"] as const)(
  `kill -9 of the %s in the middle of ${CALLS} calls: every call ends truthfully and none runs twice`,
  async (victim) => {
    plane = await startControlPlane();
    const caller = callerOf(plane, plane.tokens.operator);
    const marks = join(plane.work, "marks");
    const ids = Array.from({ length: CALLS }, (_, n) => `crash-${victim}-${n}`);

    const began = Promise.all(ids.map((id, n) => sleep(n * 5).then(() => appendMark(caller, id, marks))));
    await sleep(CALLS * 2.5);
    // On a busy machine the first may take longer than that.
    await eventually(async () => expect((await find(caller, ids[0] ?? ""))?.status.state).toBe(CallState.SUCCEEDED));
    await plane.processes[victim].kill();
    await sleep(200);
    await plane.processes[victim].start();
    await began;

    const calls = await allEnded(caller, ids);
    const ran = await countMarks(marks);
    for (const id of ids) {
      const call = calls.get(id);
      const times = ran.get(id) ?? 0;
      expect(call, `${id} is on record`).toBeDefined();
      expect(times, `${id} ran`).toBeLessThanOrEqual(1);
      if (call !== undefined) expectTruth(call, times);
    }
    const succeeded = [...calls.values()].filter((call) => call.status.state === CallState.SUCCEEDED).length;
    expect(succeeded).toBeGreaterThan(0);
    await expectLogVerifies(plane);
  },
);

/**
 * Appends its own id to a file: a tool that shows when it ran twice. A caller whose service dies tries again with the
 * same call id, which is what makes trying again safe.
 */
async function appendMark(caller: Caller, id: string, marks: string): Promise<void> {
  const params = { argv: ["tee", "-a", marks], stdin: `${id}\n` };
  for (let tries = 0; ; tries++) {
    try {
      await caller.registry.callTool({ tool: "exec", params, callId: id });
      return;
    } catch (error: unknown) {
      if (!isRetryable(error) || tries === 100) throw error;
      await sleep(100);
    }
  }
}

/** What a call says of itself has to agree with what is in the file. */
function expectTruth(call: CompleteCall, times: number): void {
  const what = `${call.id} is in state ${Number(call.status.state)}: ${call.status.errorMessage}`;
  switch (call.status.state) {
    case CallState.SUCCEEDED:
      expect(times, what).toBe(1);
      break;
    case CallState.UNKNOWN:
      break;
    case CallState.FAILED:
      expect(
        [
          ErrorReason.NOT_STARTED,
          ErrorReason.POLICY_UNAVAILABLE,
          ErrorReason.DEVICE_OFFLINE,
          ErrorReason.GRANT_EXPIRED,
        ],
        what,
      ).toContain(call.status.error?.reason);
      expect(times, what).toBe(0);
      break;
    default:
      expect.unreachable(what);
  }
}

/** Waits until every call that is on record has ended. */
async function allEnded(caller: Caller, ids: readonly string[]): Promise<Map<string, CompleteCall>> {
  const ended = new Map<string, CompleteCall>();
  const gone = new Set<string>();
  const deadline = Date.now() + ENDING_MS;
  while (ended.size + gone.size < ids.length) {
    if (Date.now() > deadline) throw new Error(`${ids.length - ended.size - gone.size} calls have not ended`);
    for (const id of ids.filter((one) => !ended.has(one) && !gone.has(one))) {
      const call = await find(caller, id);
      if (call === undefined) gone.add(id);
      else if (isEnd(call.status.state)) ended.set(id, call);
    }
    await sleep(50);
  }
  return ended;
}

async function find(caller: Caller, id: string): Promise<CompleteCall | undefined> {
  try {
    const { call } = await caller.registry.getCall({ callId: id });
    return call && completeCall(call);
  } catch (error: unknown) {
    if (reasonOf(error) === ErrorReason.NOT_FOUND) return undefined;
    throw error;
  }
}

async function countMarks(marks: string): Promise<Map<string, number>> {
  const counts = new Map<string, number>();
  for (const id of (await readFile(marks, "utf8")).split("\n")) {
    if (id !== "") counts.set(id, (counts.get(id) ?? 0) + 1);
  }
  return counts;
}

async function expectLogVerifies({ processes, folder, policyDatabase }: ControlPlane): Promise<void> {
  await processes.registry.stop();
  await processes.device.stop();
  await processes.policy.stop();
  const verifierKey = (await readFile(join(folder, "policy-0", "checkpoint.vkey"), "utf8")).trim();
  const source = openLogFile(policyDatabase);
  const report = await verifyLog(source, { verifierKey });
  source.close();
  expect(report.findings).toEqual([]);
  expect(report.size).toBeGreaterThan(CALLS);
}
