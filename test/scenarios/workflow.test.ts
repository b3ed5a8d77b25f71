import { existsSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type ActionResult, runToolCallAction, type ToolCallAction } from "../../client/tool-call-action.ts";
import { CallState } from "../../gen/ts/reeve/call/v1/call_pb.ts";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { Ingress } from "../../gen/ts/reeve/common/v1/ingress_pb.ts";
import { Role } from "../../gen/ts/reeve/options/v1/access_pb.ts";
import { FiringState, type Schedule } from "../../gen/ts/reeve/schedule/v1/schedule_service_pb.ts";
import { createTokenFile } from "../../lib/auth/token-file.ts";
import { faultDetail, reasonOf } from "../../lib/fault/fault.ts";
import { repositoryRoot } from "../../scripts/repository-root.ts";
import { approveCall } from "../../testkit/approvals.ts";
import { runReeve } from "../../testkit/cli.ts";
import { type Caller, callerOf } from "../../testkit/clients.ts";
import { eventually } from "../../testkit/eventually.ts";
import { startTestStack, type TestStack } from "../../testkit/stack.ts";

let plane: TestStack;
let operator: Caller;
let workflow: Caller;
beforeAll(async () => {
  plane = await startTestStack();
  operator = callerOf(plane, plane.tokens.operator);
  const tokens = createTokenFile(join(plane.dataFolder, "tokens.json"));
  workflow = callerOf(plane, tokens.issueToken({ name: "rules", roles: [Role.WORKFLOW] }).token);
});
afterAll(() => plane.close());

const file = (name: string) => join(plane.workFolder, name);

describe("an action of a rule", () => {
  let count = 0;
  const run = (action: ToolCallAction, key = `event-${count++}`): Promise<ActionResult> =>
    runToolCallAction(workflow.registry, action, { rule: "disk-full", idempotencyKey: key });
  const touch = (name: string): ToolCallAction => ({
    tool: "exec",
    device: "this",
    args: { argv: ["touch", file(name)] },
  });

  test("that only looks runs at once, and is seen to be a workflow's", async () => {
    const result = await run({ tool: "exec", args: { argv: ["uname", "-s"] } });
    expect(result).toMatchObject({ kind: "succeeded", output: { stdout: "Linux\n" } });
    const { call } = await operator.registry.getCall({ callId: result.kind === "succeeded" ? result.callId : "" });
    expect(call?.spec).toMatchObject({ ingress: Ingress.WORKFLOW, client: "workflow", purpose: "rule disk-full" });
  });

  test("that changes something is held, once for one event, and acts once when a person has approved it", async () => {
    const first = await run(touch("held"), "once");
    expect(first.kind).toBe("held");
    expect(await run(touch("held"), "once")).toEqual(first);
    expect(existsSync(file("held"))).toBe(false);
    if (first.kind === "held") {
      const refused = await workflow.approvals.approve({ approvalId: first.approvalId }).catch(reasonOf);
      expect(refused).toBe(ErrorReason.ROLE_REQUIRED);
      await approveCall(operator, (await heldCall(first.approvalId)) ?? "");
    }
    await eventually(async () => expect((await run(touch("held"), "once")).kind).toBe("succeeded"));
    expect(existsSync(file("held"))).toBe(true);
  });

  test("that an agent may make by itself is held, too, where it changes something", async () => {
    const args = { path: file("note.txt"), text: "x", mode: "WRITE_MODE_CREATE" };
    expect((await run({ tool: "fs.write", args })).kind).toBe("held");
    expect(existsSync(file("note.txt"))).toBe(false);
  });

  test.each<[string, ToolCallAction, string]>([
    ["denied", { tool: "fs.read", args: { path: "/etc/shadow" } }, "policy_denied"],
    ["blocked", { tool: "shell.eval", args: { command: "rm -rf /" } }, "policy_blocked"],
    ["failed", { tool: "exce", args: {} }, "unknown_tool"],
    ["failed", { tool: "exec", args: { argv: "uname" } }, "invalid_input"],
  ])("comes to %s, as data: %o", async (kind, action, reason) => {
    expect(await run(action)).toMatchObject({ kind, reason });
  });

  test("reaches nothing but calls", async () => {
    const refused = [
      workflow.schedules.listSchedules({}),
      workflow.schedules.runSchedule({ name: "any" }),
      workflow.audit.listRecords({}),
      workflow.approvals.listApprovals({}),
    ].map((answer) => answer.then(() => undefined, reasonOf));
    expect(await Promise.all(refused)).toEqual(Array(refused.length).fill(ErrorReason.ROLE_REQUIRED));
  });

  async function heldCall(approvalId: string): Promise<string | undefined> {
    return (await operator.approvals.getApproval({ approvalId })).approval?.spec?.callId;
  }
});

describe("a schedule", () => {
  const every = { case: "every", value: { seconds: 10n } } as const;
  const firedOnce = (name: string): Promise<Schedule> =>
    eventually(async () => {
      const { schedule } = await operator.schedules.getSchedule({ name });
      const [firing] = schedule?.status?.firings ?? [];
      if (schedule === undefined || firing?.state !== FiringState.CALLED) throw new Error("it has not fired");
      return schedule;
    });

  test("fires by itself when its time comes, on record, as a workflow of its own", async () => {
    const params = { argv: ["uname", "-s"] };
    await operator.schedules.createSchedule({
      name: "kernel",
      spec: { timing: every, device: "this", tool: "exec", params },
    });
    const { status } = await firedOnce("kernel");
    const callId = status?.firings[0]?.callId ?? "";
    const call = await eventually(async () => {
      const found = (await operator.registry.getCall({ callId })).call;
      return found?.status?.state === CallState.SUCCEEDED ? found : Promise.reject(new Error("not ended"));
    });
    expect(call).toMatchObject({
      spec: {
        ingress: Ingress.WORKFLOW,
        principalId: "schedule/kernel",
        purpose: "schedule kernel",
        client: "schedule",
      },
      status: { output: { stdout: "Linux\n" } },
    });
    await operator.schedules.deleteSchedule({ name: "kernel" });
    expect(await operator.schedules.getSchedule({ name: "kernel" }).catch(reasonOf)).toBe(ErrorReason.NOT_FOUND);
    expect((await operator.registry.getCall({ callId })).call?.id).toBe(callId);
  });

  test.each([
    ["an unknown tool", { tool: "exce" }, ErrorReason.UNKNOWN_TOOL, undefined],
    ["an unknown device", { device: "elsewhere" }, ErrorReason.UNKNOWN_DEVICE, undefined],
    ["a wrong argument", { params: { argv: "true" } }, ErrorReason.INVALID_INPUT, "params.argv"],
    [
      "a wrong time",
      { timing: { case: "cron", value: { expression: "61 * * * *" } } },
      ErrorReason.INVALID_INPUT,
      "spec.cron.expression",
    ],
    [
      "a short interval",
      { timing: { case: "every", value: { seconds: 1n } } },
      ErrorReason.INVALID_INPUT,
      "spec.every",
    ],
  ] as const)("with %s is refused where it is made", async (_, part, reason, field) => {
    const spec = { timing: every, device: "this", tool: "exec", params: { argv: ["true"] }, ...part };
    const refused = await operator.schedules.createSchedule({ name: "wrong", spec }).catch((error: unknown) => error);
    expect(faultDetail(refused)).toMatchObject({ reason, ...(field && { metadata: { field } }) });
    expect(await operator.schedules.getSchedule({ name: "wrong" }).catch(reasonOf)).toBe(ErrorReason.NOT_FOUND);
  });

  test("is made, shown and changed on the command line, by operators only", async () => {
    const call = ["--", "call", "this", "exec", "--purpose", "to try", "--", "uname", "-s"];
    const add = ["schedule", "add", "--name", "cli", "--cron", "0 3 * * *", "--time-zone", "Europe/Berlin", ...call];
    expect((await runReeve(add, plane.agent)).code).toBe(3);
    expect(await runReeve(add, plane.operator)).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(
        /when +0 3 \* \* \* Europe\/Berlin\nnext +\d{4}-.*\n.*calls as +schedule\/cli/s,
      ) as string,
    });
    // The same again is the same schedule; another under its name is refused.
    expect((await runReeve(add, plane.operator)).code).toBe(0);
    expect((await runReeve(add.with(5, "1 3 * * *"), plane.operator)).stderr).toContain(
      "name is that of another schedule",
    );
    expect(await runReeve(["schedule", "run", "cli"], plane.operator)).toMatchObject({ code: 0 });
    const listed = await runReeve(["schedule", "list"], plane.owner);
    expect(listed.stdout).toMatch(/cli +0 3 \* \* \* Europe\/Berlin +exec .* this +in \d+/);
    expect((await runReeve(["schedule", "pause", "cli"], plane.operator)).stdout).toMatch(/next +paused/);
    const shown = JSON.parse((await runReeve(["schedule", "show", "cli", "--json"], plane.owner)).stdout) as Record<
      string,
      unknown
    >;
    expect(shown).toMatchObject({ name: "cli", status: { paused: true, firings: [{ manual: true }] } });
    expect((await runReeve(["schedule", "resume", "cli"], plane.operator)).stdout).toMatch(/next +\d{4}-/);
    expect((await runReeve(["schedule", "remove", "cli"], plane.operator)).code).toBe(0);
    expect((await runReeve(["schedule", "show", "cli"], plane.operator)).code).toBe(2);
  });

  test.each([
    [["--cron", "0 3 * * *"], "what to call stands after --"],
    [["--cron", "0 3 * * *", "--crn", "--", "call", "this", "exec"], "unknown option '--crn'"],
    [["--", "call", "this", "exec"], "--cron or --every says when"],
    [["--every", "1h", "--time-zone", "UTC", "--", "call", "this", "exec"], "--time-zone is for --cron"],
    [["--every", "1h", "--", "call", "this"], "DEVICE and TOOL are needed"],
  ])("that is typed as %j is refused by what is missing", async (words, why) => {
    const { code, stderr } = await runReeve(["schedule", "add", "--name", "typed", ...words], plane.operator);
    expect([code, stderr]).toEqual([2, expect.stringContaining(why)]);
  });
});

test("the rule that examples/schedules.md shows lets one schedule's call run by itself, and no other", async () => {
  const page = await readFile(join(repositoryRoot, "examples/schedules.md"), "utf8");
  const blocks = [...page.matchAll(/```yaml\n(.*?)```/gs)].map(([, text = ""]) => text);
  const [rule = "", exception = ""] = blocks;
  const shipped = await readFile(join(repositoryRoot, "services/policy/rules/default-policy.yaml"), "utf8");
  const head = "  - id: workflow/unattended\n    effect: hold\n    when: >-\n";
  expect(shipped).toContain(head);
  const policyFile = join(plane.dataFolder, "policy.yaml");
  const changed = shipped.replace(head, `${rule}\n${head}      ${exception.trim()} &&\n`);
  await writeFile(policyFile, changed);
  const checked = await runReeve(["policy", "check", policyFile], plane.operator);
  expect([checked.code, checked.stderr]).toEqual([0, ""]);
  const other = await startTestStack({ policyFile });
  try {
    const { schedules, registry } = callerOf(other, other.tokens.operator);
    const stateOf = async (name: string, path: string) => {
      const params = { path: join(other.workFolder, path), text: "x" };
      const timing = { case: "every", value: { seconds: 3600n } } as const;
      await schedules.createSchedule({ name, spec: { timing, device: "this", tool: "fs.write", params } });
      const { firing } = await schedules.runSchedule({ name });
      return eventually(async () => {
        const state = (await registry.getCall({ callId: firing?.callId ?? "" })).call?.status?.state;
        return state === CallState.SUCCEEDED || state === CallState.HELD
          ? state
          : Promise.reject(new Error(`${state}`));
      });
    };
    expect(await stateOf("report", "report.txt")).toBe(CallState.SUCCEEDED);
    expect(await stateOf("other", "report.txt")).toBe(CallState.HELD);
    await schedules.deleteSchedule({ name: "report" });
    expect(await stateOf("report", "else.txt")).toBe(CallState.HELD);
  } finally {
    await other.close();
  }
});
