import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Approval } from "../../../gen/ts/reeve/approval/v1/approval_pb.ts";
import { CallState } from "../../../gen/ts/reeve/call/v1/call_pb.ts";
import type { Decision } from "../../../gen/ts/reeve/policy/v1/decision_pb.ts";
import { openTestLink } from "./test-link.ts";
import { type TestPolicy, testFolder } from "./test-policy.ts";
import { testRequest } from "./test-requests.ts";

/** A policy file that holds everything; approvals expire and grants end after the given times. */
export async function holdingPolicy(approvalTtl: string, grantTtl = "60s", fourEyes = false): Promise<string> {
  const path = join(await testFolder(), "policy.yaml");
  await writeFile(
    path,
    `version: 1
approvals: { ttl: ${approvalTtl}, four_eyes: ${fourEyes} }
grants: { ttl: ${grantTtl} }
rules:
  - { id: all, effect: hold, message: Everything waits. }
`,
  );
  return path;
}

/** Asks about a call that is held, and returns its approval. */
export async function hold(
  policy: TestPolicy,
  changes: Partial<Parameters<typeof testRequest>[0]> = {},
): Promise<Approval> {
  const request = testRequest({ tool: "shell.eval", args: { command: "ls" }, ...changes });
  const { decision } = await policy.policy.authorize({ request });
  if (decision?.outcome.case !== "hold") throw new Error("not held");
  const { approval } = await policy.approvals.getApproval({ approvalId: decision.outcome.value.approvalId });
  if (!approval) throw new Error("no approval");
  return approval;
}

/** Approves, as the operator. */
export async function approve(policy: TestPolicy, { id, spec }: Approval): Promise<void> {
  await policy.approvals.approve({ approvalId: id, summaryDigest: spec?.summaryDigest ?? "" });
}

/** What policy responds to a wait for an approval. */
export async function awaitDecision(policy: TestPolicy, approvalId: string): Promise<Decision> {
  const link = openTestLink(policy.policy);
  const answer = await link.ask({ case: "awaitApproval", value: { approvalId } });
  await link.end();
  if (answer.case !== "decision") throw new Error(`answered with ${answer.case}`);
  return answer.value;
}

/** The records about a call, the oldest first. */
export async function events(policy: TestPolicy, callId: string) {
  const { entries } = await policy.audit.listRecords({ callId });
  return entries.map(({ record }) => ({ actor: record?.actor, case: record?.event.case, value: record?.event.value }));
}

/** Says how a call ended, as the registry does. */
export async function endCall(
  policy: TestPolicy,
  callId: string,
  state: CallState = CallState.CANCELED,
): Promise<void> {
  const link = openTestLink(policy.policy);
  await link.ask({ case: "recordOutcome", value: { callId, state } });
  await link.end();
}
