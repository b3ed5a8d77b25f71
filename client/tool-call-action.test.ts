import { createRouterTransport } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { CallState } from "../gen/ts/reeve/call/v1/call_pb.ts";
import { CallService, type CallToolRequest } from "../gen/ts/reeve/call/v1/call_service_pb.ts";
import { ErrorReason } from "../gen/ts/reeve/common/v1/error_pb.ts";
import { createError } from "./errors.ts";
import { registryClient } from "./registry.ts";
import { type ActionOrigin, actionCallId, runToolCallAction, type ToolCallAction } from "./tool-call-action.ts";

const JOB: ActionOrigin = { job: "nightly backup", scheduledTime: new Date("2026-11-23T03:00:00Z") };
const ACTION: ToolCallAction = { tool: "exec", device: "nas", args: { argv: ["true"] } };

/** Runs an action against a registry whose call ends so, and returns what it was asked as well. */
async function run(end: { state: CallState; reason?: ErrorReason; errorMessage?: string; approval?: string } | Error) {
  const asked: CallToolRequest[] = [];
  const call = (id: string) => {
    if (end instanceof Error) throw end;
    const { state, reason, errorMessage = "", approval } = end;
    const more = { ...(reason && { error: { reason } }), ...(approval && { approval: { id: approval } }) };
    return { id, spec: {}, status: { state, errorMessage, output: { stdout: "ok" }, ...more } };
  };
  const transport = createRouterTransport((router) =>
    router.service(CallService, {
      callTool(request) {
        asked.push(request);
        return { call: call(request.callId) };
      },
      getCall: ({ callId }) => ({ call: call(callId) }),
      async *watchCall({ callId }) {
        yield { event: { callId, event: { case: "call" as const, value: call(callId) } } };
        await new Promise((resolve) => setTimeout(resolve, 1000));
      },
    }),
  );
  return { result: await runToolCallAction(registryClient(transport), ACTION, JOB, {}), asked };
}

test("asks for the action as it stands, under the origin's id", async () => {
  const { result, asked } = await run({ state: CallState.SUCCEEDED });
  const callId = await actionCallId(JOB);
  expect(result).toEqual({ kind: "succeeded", callId, output: { stdout: "ok" } });
  expect(asked[0]).toMatchObject({
    callId,
    tool: "exec",
    device: "nas",
    params: { argv: ["true"] },
    purpose: "job nightly backup",
  });
  expect(callId).toMatch(/^nightly-backup-[0-9a-f]{24}$/);
});

test.each<[string, Parameters<typeof run>[0], object]>([
  ["held", { state: CallState.HELD, approval: "apr-1" }, { approvalId: "apr-1" }],
  ["queued", { state: CallState.QUEUED }, {}],
  [
    "denied",
    { state: CallState.DENIED, reason: ErrorReason.POLICY_DENIED, errorMessage: "no" },
    { reason: "policy_denied", message: "no" },
  ],
  ["denied", { state: CallState.EXPIRED, reason: ErrorReason.APPROVAL_EXPIRED }, { reason: "approval_expired" }],
  ["blocked", { state: CallState.DENIED, reason: ErrorReason.POLICY_BLOCKED }, { reason: "policy_blocked" }],
  ["failed", { state: CallState.FAILED, reason: ErrorReason.TOOL_FAILED }, { reason: "tool_failed" }],
  ["failed", { state: CallState.TIMED_OUT, reason: ErrorReason.TIMED_OUT }, { reason: "timed_out" }],
  [
    "failed",
    createError(ErrorReason.UNKNOWN_TOOL, 'no tool "exce"'),
    { reason: "unknown_tool", message: 'no tool "exce"' },
  ],
  ["unknown", { state: CallState.UNKNOWN, reason: ErrorReason.INTERRUPTED }, { reason: "interrupted" }],
])("what comes of it is data: %s %o", async (kind, end, more) => {
  const { result } = await run(end);
  expect(result).toMatchObject({ kind, callId: await actionCallId(JOB), ...more });
});

test("one origin is one call: another time, rule or key is another", async () => {
  const origins: ActionOrigin[] = [
    JOB,
    { job: "nightly backup", scheduledTime: new Date("2026-11-24T03:00:00Z") },
    { rule: "nightly backup", idempotencyKey: "2026-11-23T03:00:00.000Z" },
    { rule: "nightly", idempotencyKey: "backup" },
  ];
  const ids = await Promise.all(origins.map(actionCallId));
  expect(new Set(ids).size).toBe(origins.length);
  expect(await actionCallId({ ...JOB })).toBe(ids[0]);
  await expect(actionCallId({ rule: "x", idempotencyKey: "" })).rejects.toThrow("a key that is unique");
});
