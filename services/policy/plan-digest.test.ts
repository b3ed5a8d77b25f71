import { fromBinary } from "@bufbuild/protobuf";
import { afterAll, afterEach, describe, expect, it } from "vitest";
import { SandboxLevel } from "../../gen/ts/reeve/device/v1/device_pb.ts";
import { Role } from "../../gen/ts/reeve/options/v1/access_pb.ts";
import type { Decision, DecisionRequest } from "../../gen/ts/reeve/policy/v1/decision_pb.ts";
import { type Grant, GrantSchema } from "../../gen/ts/reeve/policy/v1/grant_pb.ts";
import { analyzeCall, planDigest } from "../../lib/command/call.ts";
import { toolByName } from "../../lib/toolschema/catalog-file.ts";
import { approve, awaitDecision } from "./testing/test-approvals.ts";
import { removeTestFolders, startTestPolicy, type TestPolicy } from "./testing/test-policy.ts";
import { type TestRequest, testRequest } from "./testing/test-requests.ts";

const running: TestPolicy[] = [];
afterEach(async () => {
  for (const policy of running.splice(0)) await policy.stop();
});
afterAll(removeTestFolders);

async function start(): Promise<TestPolicy> {
  const policy = await startTestPolicy({});
  running.push(policy);
  return policy;
}

/** A request about a device with a folder that may be read, and with a sandbox unless something else is said. */
function asked(test: TestRequest, sandbox: SandboxLevel = SandboxLevel.READ_ONLY, roots = ["/srv"]): DecisionRequest {
  const request = testRequest(test);
  if (request.device) Object.assign(request.device, { sandbox, roots });
  return request;
}

const text = (command: string, more: Partial<TestRequest> = {}) => ({ tool: "shell.eval", args: { command }, ...more });

async function decisionOf({ policy }: TestPolicy, request: DecisionRequest): Promise<Decision> {
  const { decision } = await policy.authorize({ request });
  return decision ?? expect.fail();
}

function grantOf({ outcome }: Decision): Grant {
  if (outcome.case !== "permit") throw new Error(`a ${outcome.case}`);
  return fromBinary(GrantSchema, outcome.value.grant?.statement ?? new Uint8Array());
}

function digestOf(tool: string, args: Record<string, string | string[]>): string {
  const { plan } = analyzeCall(toolByName(tool)?.inputSchema ?? {}, args, { roots: ["/srv"] });
  return planDigest(plan ?? expect.fail());
}

describe("a command of an agent that only looks at files", () => {
  it("runs by itself, as the plan that its grant names, in a sandbox", async () => {
    const policy = await start();
    for (const [tool, args] of [
      ["shell.eval", { command: "grep -rn TODO src | head -n 5" }],
      ["exec", { argv: ["cat", "a.txt"] }],
      ["shell.eval", { command: "git status --short" }],
    ] as const) {
      const grant = grantOf(await decisionOf(policy, asked({ tool, args: { ...args } as never })));
      expect(grant).toMatchObject({ planDigest: digestOf(tool, args as never), approvalId: "" });
      expect(grant.obligations?.sandbox).toBe(SandboxLevel.READ_ONLY);
    }
  });

  it("waits for a person where the device has no sandbox, or nothing to read", async () => {
    const policy = await start();
    const none = await decisionOf(policy, asked(text("ls"), SandboxLevel.NONE));
    expect([none.outcome.case, none.ruleIds]).toEqual(["hold", ["shell.eval/agent-plan", "mode/sandbox"]]);
    expect((await decisionOf(policy, asked(text("ls"), SandboxLevel.READ_ONLY, []))).outcome.case).toBe("hold");
  });

  it("waits on Windows, whatever its text is", async () => {
    const policy = await start();
    for (const test of [text("ls | wc -l"), { tool: "exec", args: { argv: ["ls"] } }]) {
      const request = asked(test);
      if (request.device) request.device.platform = "win32/x64";
      expect(await decisionOf(policy, request)).toMatchObject({ outcome: { case: "hold" } });
    }
  });

  it("waits where a device of a fan-out would ask", async () => {
    const policy = await start();
    const request = asked(text("ls /srv"));
    const { device } = request;
    if (device === undefined) throw new Error("no device");
    const other = { ...device, id: "dev-ffffffffffffffff", name: "other", roots: ["/home/me"] };
    expect((await decisionOf(policy, { ...request, devices: [device] })).outcome.case).toBe("permit");
    const both = { ...request, callId: "fan-out-of-two", devices: [device, other] };
    expect(await decisionOf(policy, both)).toMatchObject({
      outcome: { case: "hold" },
      ruleIds: ["shell.eval/agent-plan", "shell.eval/hold"],
    });
  });
});

describe("no plan binds", () => {
  it("what a person approved: it runs as it was shown", async () => {
    const policy = await start();
    const held = await decisionOf(policy, asked(text("ls | wc -l", { roles: [Role.OPERATOR] })));
    if (held.outcome.case !== "hold") throw new Error("not held");
    const { approval } = await policy.approvals.getApproval({ approvalId: held.outcome.value.approvalId });
    expect(approval?.spec?.summary).toContain(
      "Analysis:  allow: it only looks. It comes to\n  /usr/bin/ls | /usr/bin/wc -l\nDigest:",
    );
    await approve(policy, approval ?? expect.fail());
    const grant = grantOf(await awaitDecision(policy, approval?.id ?? ""));
    expect(grant).toMatchObject({ planDigest: "", approverIds: ["op-1"] });
    expect(grant.obligations).toBeUndefined();
  });

  it("what runs outside of a sandbox", async () => {
    const policy = await start();
    const machine = asked({ tool: "exec", args: { argv: ["uname", "-a"] } });
    expect(grantOf(await decisionOf(policy, machine)).planDigest).toBe("");
    const operators = asked({ tool: "exec", args: { argv: ["ls", "/srv"] }, roles: [Role.OPERATOR] });
    expect(grantOf(await decisionOf(policy, operators)).planDigest).toBe("");
  });
});

it("shows an approver why a text asks, with what cannot be seen in it", async () => {
  const policy = await start();
  const held = await decisionOf(policy, asked(text("ls\u200b /srv; make")));
  if (held.outcome.case !== "hold") throw new Error("not held");
  const { approval } = await policy.approvals.getApproval({ approvalId: held.outcome.value.approvalId });
  expect(approval?.spec?.summary).toContain('command: "ls\\u{200b} /srv; make"');
  expect(approval?.spec?.summary).toMatch(/^Analysis: {2}ask: it has a character that does not show/m);
});
