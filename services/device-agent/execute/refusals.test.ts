import type { DescMethodUnary } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { ExecutionOutcome } from "../../../gen/ts/reeve/device/v1/receipt_pb.ts";
import { analyzeCall, planDigest } from "../../../lib/command/call.ts";
import { CLOCK_SKEW_MS } from "../grants/check-grant.ts";
import { bytesOf, createGate, PING_CALL, ping, reconcile, run } from "../testing/test-calls.ts";
import { openTestDevice } from "../testing/test-executions.ts";
import { EVAL, EXEC, testTool } from "../testing/test-tools.ts";
import type { ToolContext } from "../tools/tool.ts";

test("a call whose turn comes after the owner's manifest has expired does not run", async () => {
  let nowMs = Date.now();
  const gate = createGate();
  const owner = { expiresMs: nowMs + 5_000, floor: "none" } as const;
  await using device = await openTestDevice({ tools: [gate.tool], maxRunning: 1, now: () => nowMs, owner });
  const first = run(device, await device.grants.start(PING_CALL));
  const second = run(device, await device.grants.start({ ...PING_CALL, callId: "call-2" }));
  await gate.started;
  nowMs += 5_000;
  gate.open();
  expect(await first).toMatchObject({ outcome: ExecutionOutcome.SUCCEEDED });
  expect(await second).toMatchObject({
    outcome: ExecutionOutcome.REFUSED,
    error: { reason: ErrorReason.MANIFEST_REFUSED },
  });
  expect(gate.runs).toHaveLength(1);
});

describe("a grant", () => {
  test("that another call has used is refused as replayed", async () => {
    const gate = createGate();
    gate.open();
    await using device = await openTestDevice({ tools: [gate.tool] });
    const grantId = "ab".repeat(16);
    await run(device, await device.grants.start(PING_CALL, { grantId }));
    const again = await run(device, await device.grants.start({ ...PING_CALL, callId: "call-2" }, { grantId }));
    expect(again).toMatchObject({
      outcome: ExecutionOutcome.REFUSED,
      error: { reason: ErrorReason.GRANT_REPLAYED, metadata: { jti: grantId } },
    });
    expect(gate.runs).toHaveLength(1);
  });

  test("that is shown for another call is refused as replayed", async () => {
    await using device = await openTestDevice({ tools: [ping] });
    const start = await device.grants.start(PING_CALL);
    await run(device, start);
    const again = await run(device, { ...start, callId: "call-2" });
    expect(again).toMatchObject({ outcome: ExecutionOutcome.REFUSED, error: { reason: ErrorReason.GRANT_REPLAYED } });
  });

  test("that is forged gets a signed refusal and does not use up the call's id", async () => {
    await using device = await openTestDevice({ tools: [ping] });
    await using stranger = await openTestDevice({ tools: [ping] });
    const refused = await run(device, await stranger.grants.start(PING_CALL));
    expect(refused).toMatchObject({ outcome: ExecutionOutcome.REFUSED, error: { reason: ErrorReason.GRANT_INVALID } });
    expect(device.receiptOf(refused)).toMatchObject({
      callId: "call-1",
      grantId: "",
      reason: ErrorReason.GRANT_INVALID,
    });
    expect(await device.ledger.find("call-1")).toBeUndefined();
    expect(await run(device, await device.grants.start(PING_CALL))).toMatchObject({
      outcome: ExecutionOutcome.SUCCEEDED,
    });
  });

  test("that ends before the call's turn comes does not run it", async () => {
    let nowMs = Date.now();
    const gate = createGate();
    await using device = await openTestDevice({ tools: [gate.tool], maxRunning: 1, now: () => nowMs });
    const first = run(device, await device.grants.start(PING_CALL));
    const second = run(device, await device.grants.start({ ...PING_CALL, callId: "call-2" }));
    await gate.started;
    nowMs += 59_000 + CLOCK_SKEW_MS;
    gate.open();
    expect(await first).toMatchObject({ outcome: ExecutionOutcome.SUCCEEDED });
    expect(await second).toMatchObject({
      outcome: ExecutionOutcome.REFUSED,
      error: { reason: ErrorReason.GRANT_EXPIRED },
    });
    expect(gate.runs).toHaveLength(1);
  });
});

describe("whatever the grant says, the device refuses", () => {
  const never = (method: DescMethodUnary) => testTool(method, () => Promise.reject(new Error("it ran")));

  test.each([
    ["a destructive program", "exec", { argv: ["rm", "-rf", "/"] }],
    ["destructive shell text", "shell.eval", { command: "true; rm -rf /" }],
  ])("%s", async (_, tool, args) => {
    await using device = await openTestDevice({ tools: [never(EXEC), never(EVAL)] });
    const finished = await run(device, await device.grants.start({ ...PING_CALL, tool, args }));
    expect(finished).toMatchObject({
      outcome: ExecutionOutcome.REFUSED,
      error: { reason: ErrorReason.POLICY_BLOCKED },
    });
    expect(finished.error?.metadata.rules).toBe("blocklist/delete-system");
    expect(device.receiptOf(finished).outcome).toBe(ExecutionOutcome.REFUSED);
    expect(device.receiptOf(finished).startTime).toBeUndefined();
  });

  test("a tool that its manifest does not offer", async () => {
    await using device = await openTestDevice({ tools: [ping], notOffered: [never(EXEC)] });
    const finished = await run(
      device,
      await device.grants.start({ ...PING_CALL, tool: "exec", args: { argv: ["true"] } }),
    );
    expect(finished).toMatchObject({
      outcome: ExecutionOutcome.REFUSED,
      error: { reason: ErrorReason.MANIFEST_REFUSED, metadata: { capability: "shell.exec" } },
    });
  });

  test.each([
    ["a field that does not exist", { argv: ["true"], shell: true }, "shell"],
    ["a field of another type", { argv: ["true", 5] }, "argv[1]"],
    ["a value that breaks a rule", { argv: [] }, "argv"],
  ])("%s", async (_, args, field) => {
    await using device = await openTestDevice({ tools: [never(EXEC)] });
    const finished = await run(device, await device.grants.start({ ...PING_CALL, tool: "exec", args: args as never }));
    expect(finished).toMatchObject({
      outcome: ExecutionOutcome.REFUSED,
      error: { reason: ErrorReason.INVALID_INPUT, metadata: { field } },
    });
  });

  test.each([
    ["another plan than its own analysis makes", { command: "echo hi" }, "ab".repeat(32)],
    ["a plan for what has none", { command: "echo hi > a" }, "ab".repeat(32)],
    ["a plan for what it would ask about", { command: "cat /etc/hosts" }, "ab".repeat(32)],
  ])("%s", async (_, args, planDigest) => {
    await using device = await openTestDevice({ tools: [never(EVAL)] });
    const finished = await run(
      device,
      await device.grants.start({ ...PING_CALL, tool: "shell.eval", args }, { planDigest }),
    );
    expect(finished).toMatchObject({
      outcome: ExecutionOutcome.REFUSED,
      error: { reason: ErrorReason.GRANT_WRONG_ARGUMENTS },
    });
  });

  test("and remembers it: the grant is used up", async () => {
    await using device = await openTestDevice({ tools: [never(EXEC)] });
    const start = await device.grants.start({ ...PING_CALL, tool: "exec", args: { argv: ["rm", "-rf", "/"] } });
    const first = await run(device, start);
    expect(bytesOf(await reconcile(device, "call-1"))).toEqual(bytesOf(first));
    expect(await device.ledger.find("call-1")).toMatchObject({ state: "refused" });
  });
});

test("a grant's plan is what the tool gets to execute, and no plan without it", async () => {
  const plans: unknown[] = [];
  const tool = testTool(EVAL, async (_: never, { plan }: ToolContext) => {
    plans.push(plan);
    return {};
  });
  await using device = await openTestDevice({ tools: [tool] });
  const args = { command: "ls | wc -l" };
  const roots = { roots: [device.work], workDir: device.work };
  const { plan } = analyzeCall(tool.spec.inputSchema, args, roots);
  const digest = planDigest(plan ?? expect.fail());
  for (const [callId, changes] of [
    ["with", { planDigest: digest }],
    ["without", {}],
  ] as const) {
    const start = await device.grants.start({ callId, tool: "shell.eval", args }, changes);
    expect(await run(device, start)).toMatchObject({ outcome: ExecutionOutcome.SUCCEEDED });
  }
  expect(plans).toEqual([plan, undefined]);
});
