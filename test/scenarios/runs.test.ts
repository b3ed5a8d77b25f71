import { createClient } from "@connectrpc/connect";
import { afterEach, describe, expect, test } from "vitest";
import { watchRun } from "../../client/runs.ts";
import { type RunEvent, RunState } from "../../gen/ts/reeve/agent/v1/run_pb.ts";
import { RunService } from "../../gen/ts/reeve/agent/v1/run_service_pb.ts";
import { ErrorReason, ErrorReasonSchema } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { Role } from "../../gen/ts/reeve/options/v1/access_pb.ts";
import { createTokenFile } from "../../lib/auth/token-file.ts";
import { faultDetail } from "../../lib/fault/fault.ts";
import { createServiceTransport } from "../../lib/rpc-client/transport.ts";
import type { ScriptedTurn } from "../../services/agent/scripted-model/script.ts";
import { type ScriptedModel, startScriptedModel } from "../../services/agent/scripted-model/server.ts";
import { runReeve } from "../../testkit/cli.ts";
import { eventually } from "../../testkit/eventually.ts";
import { startTestStack, type TestStack } from "../../testkit/stack.ts";

let model: ScriptedModel;
let stack: TestStack;
const opened: { close(): unknown }[] = [];
afterEach(async () => {
  for (const one of opened.splice(0).toReversed()) await one.close();
});

async function start(turns: readonly ScriptedTurn[]): Promise<void> {
  model = await startScriptedModel({ turns });
  opened.push(model);
  const env = { ...process.env, ANTHROPIC_API_KEY: "key", ANTHROPIC_BASE_URL: model.url };
  stack = await startTestStack({ env });
  opened.push(stack);
}

function clientWith(token: string) {
  const transport = createServiceTransport({ baseUrl: stack.agentService.url, token });
  opened.push(transport);
  return createClient(RunService, transport);
}

function tokenOf(role: Role): string {
  return createTokenFile(`${stack.dataFolder}/tokens.json`).issueToken({ name: "test", roles: [role] }).token;
}

const exec = (argv: string[], id?: string) => ({ name: "exec", input: { argv }, ...(id !== undefined && { id }) });
/** The detail of the error that a call ends with, whose reason it must have. */
async function expectReason(call: Promise<unknown>, reason: ErrorReason) {
  const detail = faultDetail(
    await call.then(
      () => undefined,
      (error: unknown) => error,
    ),
  );
  expect(ErrorReasonSchema.value[detail?.reason ?? 0]?.localName).toBe(ErrorReasonSchema.value[reason]?.localName);
  return { metadata: { ...detail?.metadata } };
}

describe("a run", () => {
  test("works with a device's tools as the service's own principal, and can be read", async () => {
    await start([
      { text: "I look.", toolUses: [exec(["uname", "-s"])], usage: { input: 10, output: 5 } },
      { text: "It is Linux." },
    ]);
    const done = await runReeve(
      ["run", "start", "--watch", "--purpose", "a test", "Which system is this?"],
      stack.owner,
    );
    expect([done.code, done.stdout]).toEqual([0, "I look.\nIt is Linux.\n"]);
    expect(done.stderr).toContain("exec succeeded");
    const [, runId = ""] = /run (run-\w+)/.exec(done.stderr) ?? [];
    const shown = JSON.parse((await runReeve(["run", "get", runId, "--json"], stack.owner)).stdout);
    expect(shown).toMatchObject({
      principalName: "owner-cli",
      status: { state: "RUN_STATE_SUCCEEDED", end: "done", text: "It is Linux.", turns: 2, calls: [{ tool: "exec" }] },
    });
    const callId = shown.status.calls[0].callId;
    const call = JSON.parse((await runReeve(["call", "show", callId, "--json"], stack.operator)).stdout);
    expect(JSON.stringify(call)).toContain(`run ${runId}: a test`);
    const runs = createTokenFile(`${stack.dataFolder}/tokens.json`)
      .listTokens()
      .find(({ name }) => name === "runs");
    expect(call.call?.principalId ?? call.principalId ?? call.status?.principalId ?? JSON.stringify(call)).toContain(
      runs?.id,
    );
    expect(model.problems).toEqual([]);
  });

  test("waits for a held call, says what to approve, and goes on when a person has approved it elsewhere", async () => {
    await start([{ toolUses: [exec(["touch", "x"])] }, { text: "Made." }]);
    const runs = clientWith(stack.tokens.agent);
    const { run } = await runs.startRun({ spec: { prompt: "Make it.", devices: ["this"] } });
    const runId = run?.id ?? "";
    const waiting = await eventually(async () => {
      const { run: now } = await runs.getRun({ runId });
      expect(now?.status?.state).toBe(RunState.WAITING);
      return now;
    });
    const [wait] = waiting?.status?.waits ?? [];
    expect(wait).toMatchObject({ what: "held", text: "exec", callId: expect.stringContaining(runId.slice(0, 10)) });
    const shown = await runReeve(["run", "get", runId], stack.owner);
    expect(shown.stdout).toContain(`reeve approval approve ${wait?.approvalId}`);
    expect((await runReeve(["approval", "approve", wait?.approvalId ?? "", "--yes"], stack.operator)).code).toBe(0);
    const events: RunEvent[] = [];
    for await (const event of watchRun(runs, runId)) events.push(event);
    expect(events.map(({ sequence }) => sequence)).toEqual(events.map((_, index) => index + 1));
    const states = events.flatMap(({ event }) => (event.case === "state" ? [event.value.state] : []));
    expect(states).toEqual([RunState.RUNNING, RunState.WAITING, RunState.RUNNING, RunState.SUCCEEDED]);
    expect(events.map(({ event }) => event.case)).toContain("toolReport");
  });

  test("asks a person, and goes on with the first answer", async () => {
    await start([{ toolUses: [{ name: "ask_user", input: { question: "Which disk?" } }] }, { text: "Thanks." }]);
    const runs = clientWith(stack.tokens.agent);
    const { run } = await runs.startRun({ spec: { prompt: "Ask.", mayAsk: true } });
    const runId = run?.id ?? "";
    const questionId = await eventually(async () => {
      const { run: now } = await runs.getRun({ runId });
      expect(now?.status?.waits[0]?.text).toBe("Which disk?");
      return now?.status?.waits[0]?.questionId ?? "";
    });
    await expectReason(runs.answerRun({ runId, questionId: "other", text: "b" }), ErrorReason.NOT_FOUND);
    await runs.answerRun({ runId, questionId, text: "the first" });
    await runs.answerRun({ runId, questionId, text: "the first" });
    await expectReason(runs.answerRun({ runId, questionId, text: "another" }), ErrorReason.RUN_ENDED);
    await eventually(async () => {
      const { run: now } = await runs.getRun({ runId });
      expect(now?.status).toMatchObject({ state: RunState.SUCCEEDED, waits: [] });
    });
    expect(JSON.stringify(model.requests.at(-1)?.messages)).toContain("The user answered: the first");
  });

  test("is canceled with its held call", async () => {
    await start([{ toolUses: [exec(["touch", "x"])] }]);
    const runs = clientWith(stack.tokens.agent);
    const runId = (await runs.startRun({ spec: { prompt: "Make it.", devices: ["this"] } })).run?.id ?? "";
    await eventually(async () => {
      expect((await runs.getRun({ runId })).run?.status?.state).toBe(RunState.WAITING);
    });
    const canceled = await runReeve(["run", "cancel", runId], stack.operator);
    expect(canceled.code).toBe(0);
    const watched = await runReeve(["run", "watch", runId], stack.owner);
    expect(watched.code).toBe(7);
    const { run } = await runs.getRun({ runId });
    expect(run?.status).toMatchObject({ state: RunState.CANCELED, calls: [{ state: "canceled" }] });
  });

  test("fails with what the model's provider said", async () => {
    await start([{ failures: [{ status: 401, type: "authentication_error", message: "no" }] }]);
    const done = await runReeve(["run", "start", "-w", "Hello."], stack.owner);
    expect([done.code, done.stderr]).toEqual([9, expect.stringContaining("failed: ")]);
  });
});

describe("whose a run is", () => {
  test("its starter's: others see none of it, operators and auditors all, and only operators change it", async () => {
    await start([{ text: "Done." }]);
    const runs = clientWith(stack.tokens.agent);
    const other = clientWith(tokenOf(Role.AGENT));
    const auditor = clientWith(tokenOf(Role.AUDITOR));
    const runId = (await runs.startRun({ runId: "mine", spec: { prompt: "Hi." } })).run?.id ?? "";
    expect(runId).toMatch(/^mine-[0-9a-f]{32}$/);
    expect((await runs.startRun({ runId: "mine", spec: { prompt: "Hi." } })).run?.id).toBe(runId);
    await expectReason(runs.startRun({ runId: "mine", spec: { prompt: "Other." } }), ErrorReason.RUN_ID_REUSED);
    for (const call of [
      () => other.getRun({ runId }),
      () => other.cancelRun({ runId }),
      () => other.answerRun({ runId, questionId: "q", text: "t" }),
      async () => {
        for await (const _ of other.watchRun({ runId })) throw new Error("it sees something");
      },
    ]) {
      await expectReason(call(), ErrorReason.NOT_FOUND);
    }
    expect((await other.listRuns({})).runs).toEqual([]);
    expect((await auditor.listRuns({})).runs.map(({ id }) => id)).toEqual([runId]);
    await expectReason(auditor.cancelRun({ runId }), ErrorReason.ROLE_REQUIRED);
    await clientWith(stack.tokens.operator).cancelRun({ runId });
  });

  test("names what is wrong with a request before anything is written", async () => {
    await start([]);
    const runs = clientWith(stack.tokens.agent);
    const cases = [
      [{ prompt: "" }, ErrorReason.INVALID_INPUT],
      [{ prompt: "x", model: "nowhere/none" }, ErrorReason.INVALID_INPUT],
      [{ prompt: "x", agent: "none" }, ErrorReason.INVALID_INPUT],
      [{ prompt: "x", devices: ["absent"] }, ErrorReason.UNKNOWN_DEVICE],
      [{ prompt: "x", durable: true }, ErrorReason.RUN_UNSUPPORTED],
    ] as const;
    for (const [spec, reason] of cases) {
      await expectReason(
        runs.startRun({ spec: { ...spec, devices: "devices" in spec ? [...spec.devices] : [] } }),
        reason,
      );
    }
    expect((await runs.listRuns({})).runs).toEqual([]);
  });
});

describe("a run of a starter whose token lists tools", () => {
  test("gets no other tool, whatever it asks for", async () => {
    await start([{ text: "One." }, { text: "Two." }]);
    const file = createTokenFile(`${stack.dataFolder}/tokens.json`);
    const { token } = file.issueToken({ name: "narrow", roles: [Role.AGENT], tools: ["fs.read", "fs.list"] });
    const runs = clientWith(token);
    for (const toolsAllowed of [[], ["fs.read", "exec"]]) {
      const { run } = await runs.startRun({ spec: { prompt: "Look.", devices: ["this"], toolsAllowed } });
      await eventually(async () => {
        expect((await runs.getRun({ runId: run?.id ?? "" })).run?.status?.state).toBe(RunState.SUCCEEDED);
      });
    }
    const given = model.requests.map(({ tools }) => tools?.flatMap((tool) => ("name" in tool ? [tool.name] : [])));
    expect(given).toEqual([["fs_list", "fs_read"], ["fs_read"]]);
    const none = runs.startRun({ spec: { prompt: "Do.", devices: ["this"], toolsAllowed: ["exec"] } });
    await expectReason(none, ErrorReason.TOOL_NOT_ALLOWED);
  });
});

describe("a run over untrusted content", () => {
  test("is refused with devices, however they were configured, and runs without any tool", async () => {
    await start([{ text: "It says: delete everything." }]);
    const trigger = clientWith(tokenOf(Role.TRIGGER));
    const refused = trigger.startRun({ spec: { prompt: "A mail.", devices: ["this"] } });
    expect((await expectReason(refused, ErrorReason.UNTRUSTED_CONTENT)).metadata).toEqual({ field: "spec.devices" });
    const declared = clientWith(stack.tokens.agent).startRun({
      spec: { prompt: "A mail.", devices: ["this"], untrusted: true },
    });
    await expectReason(declared, ErrorReason.UNTRUSTED_CONTENT);
    // Whatever it says of itself.
    const { run } = await trigger.startRun({ spec: { prompt: "A mail.", untrusted: false } });
    expect(run?.status?.untrusted).toBe(true);
    await eventually(async () => {
      const { run: now } = await trigger.getRun({ runId: run?.id ?? "" });
      expect(now?.status?.state).toBe(RunState.SUCCEEDED);
    });
    expect(model.requests[0]?.tools ?? []).toEqual([]);
    await expectReason(trigger.cancelRun({ runId: run?.id ?? "" }), ErrorReason.ROLE_REQUIRED);
  });

  test("calls with a token whose every call of a tool the registry refuses", async () => {
    await start([]);
    const env = { REEVE_DATA_DIR: stack.dataFolder, REEVE_TOKEN: tokenOf(Role.TRIGGER) };
    for (const args of [
      ["call", "this", "exec", "--argv", "true"],
      ["tool", "list"],
      ["device", "list"],
    ]) {
      expect((await runReeve(args, env)).code, args.join(" ")).toBe(3);
    }
  });
});
