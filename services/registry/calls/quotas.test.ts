import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, test } from "vitest";
import { CallState } from "../../../gen/ts/reeve/call/v1/call_pb.ts";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { Role } from "../../../gen/ts/reeve/options/v1/access_pb.ts";
import type { Principal } from "../../../lib/auth/principal.ts";
import { faultDetail } from "../../../lib/fault/fault.ts";
import { type TestCallFields, testCall } from "../../../testkit/test-call.ts";
import { createQuotas, type Quotas } from "./quotas.ts";

const AGENT: Principal = { id: "a", kind: "agent", roles: [Role.AGENT], name: "a" };
const OTHER: Principal = { ...AGENT, id: "b" };
const OPERATOR: Principal = { id: "o", kind: "operator", roles: [Role.OPERATOR], name: "o" };
const LIMITS = { calls: 2, fanOutCalls: 3, queuedCalls: 2, queuedBytes: 100 };
const KEPT = { queueExpireTime: timestampFromMs(1) };

function open(quotas: Quotas, principal: Principal, changes: TestCallFields = {}, bytes = 10) {
  return quotas.open(principal, testCall({ principalId: principal.id, ...changes }), bytes);
}

/** What a refusal names. */
function refusal(job: () => unknown): Record<string, string> | undefined {
  try {
    job();
    return undefined;
  } catch (error: unknown) {
    const detail = faultDetail(error);
    expect(detail?.reason).toBe(ErrorReason.QUOTA_EXCEEDED);
    return detail?.metadata;
  }
}

describe("quotas", () => {
  test("each principal has its own, and an operator eight times as much", () => {
    const refused: string[] = [];
    const quotas = createQuotas(LIMITS, (quota) => refused.push(quota));
    const tickets = [open(quotas, AGENT), open(quotas, AGENT)];
    expect(refusal(() => open(quotas, AGENT))).toEqual({ quota: "calls", limit: "2" });
    expect(refusal(() => open(quotas, OTHER))).toBeUndefined();
    for (let at = 0; at < 16; at++) open(quotas, OPERATOR);
    expect(refusal(() => open(quotas, OPERATOR))).toEqual({ quota: "calls", limit: "16" });
    tickets[0]?.moved(CallState.SUCCEEDED);
    tickets[0]?.left();
    expect(refusal(() => open(quotas, AGENT))).toBeUndefined();
    expect(refusal(() => open(quotas, AGENT))).toBeDefined();
    expect(refused).toEqual(["calls", "calls", "calls"]);
  });

  test("a call that waits for a person or its device leaves room for those that run, and takes it when it goes on", () => {
    const quotas = createQuotas(LIMITS);
    const held = open(quotas, AGENT);
    held.moved(CallState.HELD);
    const running = [open(quotas, AGENT), open(quotas, AGENT)];
    expect(refusal(() => open(quotas, AGENT))).toBeDefined();
    held.moved(CallState.PERMITTED);
    held.moved(CallState.DISPATCHED);
    running[0]?.left();
    expect(refusal(() => open(quotas, AGENT))).toBeDefined();
    held.moved(CallState.FAILED);
    held.moved(CallState.HELD);
    expect(refusal(() => open(quotas, AGENT))).toBeUndefined();
  });

  test("calls that are to be kept are counted from when they come until they end", () => {
    const quotas = createQuotas(LIMITS);
    const first = open(quotas, AGENT, KEPT, 60);
    first.moved(CallState.QUEUED);
    expect(refusal(() => open(quotas, AGENT, KEPT, 41))).toEqual({ quota: "queued_bytes", limit: "100" });
    const second = open(quotas, AGENT, KEPT, 40);
    second.moved(CallState.QUEUED);
    expect(refusal(() => open(quotas, AGENT, KEPT, 0))).toEqual({ quota: "queued_calls", limit: "2" });
    expect(refusal(() => open(quotas, AGENT))).toBeUndefined();
    first.left();
    expect(refusal(() => open(quotas, AGENT, KEPT, 60))).toBeUndefined();
  });

  test("a fan-out over many devices has a quota of its own", () => {
    const quotas = createQuotas(LIMITS);
    for (let at = 0; at < 3; at++) open(quotas, AGENT, { fanOutId: "f" });
    expect(refusal(() => open(quotas, AGENT, { fanOutId: "g" }))).toEqual({ quota: "fan_out_calls", limit: "3" });
    expect(refusal(() => open(quotas, AGENT))).toBeUndefined();
  });

  test("a call of before a restart is counted, and never refused", () => {
    const quotas = createQuotas(LIMITS);
    const call = testCall({ principalId: "a", state: CallState.DISPATCHED });
    const tickets = Array.from({ length: 5 }, () => quotas.reopen(call, 0));
    expect(refusal(() => open(quotas, AGENT))).toBeDefined();
    for (const ticket of tickets) ticket.left();
    expect(refusal(() => open(quotas, AGENT))).toBeUndefined();
  });
});
