import { mkdir, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type CompleteCall, completeCall } from "../../client/complete-call.ts";
import { registryClient } from "../../client/registry.ts";
import { CallState } from "../../gen/ts/reeve/call/v1/call_pb.ts";
import { Mode } from "../../gen/ts/reeve/device/v1/device_pb.ts";
import { createLogger } from "../../lib/log/log.ts";
import { createServiceTransport } from "../../lib/rpc-client/transport.ts";
import { demoPrompt, demoTurns } from "../../services/agent/demo-script.ts";
import type { AgentResult } from "../../services/agent/loop/events.ts";
import { runInline } from "../../services/agent/loop/run-inline.ts";
import { hasKey, modelFor } from "../../services/agent/providers/model-for.ts";
import { PROVIDERS } from "../../services/agent/providers/providers.ts";
import { newRunInput } from "../../services/agent/run-input/run-input.ts";
import { startScriptedModel } from "../../services/agent/scripted-model/server.ts";
import { createRegistryCaller } from "../../services/agent/toolbox/registry-caller.ts";
import { loadToolset } from "../../services/agent/toolset/toolset.ts";
import { createNarrator } from "../chat/narrate.ts";
import type { CommandContext } from "../command-context.ts";
import { ExitCode } from "../exit-codes.ts";
import { styleFor } from "../print/style.ts";
import { type Session, sessionOver } from "../session.ts";
import { issueFirstTokens } from "../stack/first-tokens.ts";
import { type Stack, startStack } from "../stack/stack.ts";
import { createDecider } from "./decide.ts";
import { proveRecord } from "./prove.ts";

/** How the demo runs. */
export interface DemoOptions {
  context: CommandContext;
  /** Approve without asking. */
  yes: boolean;
  /** The model, when there is an API key. */
  model: string | undefined;
  /** The folder that the model looks into. */
  folder: string;
}

/** Brings everything up in a temporary folder, lets a model work through the gate, and proves the record. */
export async function runDemo(options: DemoOptions): Promise<number> {
  const folder = await mkdtemp(join(tmpdir(), "reeve-demo-"));
  const closers: (() => Promise<void>)[] = [() => rm(folder, { recursive: true, force: true })];
  const cleanUp = async () => {
    for (const close of closers.splice(0).reverse()) await close();
  };
  const interrupted = new AbortController();
  const release = options.context.onInterrupt(() => interrupted.abort());
  try {
    return await demo(options, folder, closers, interrupted.signal);
  } finally {
    release();
    await cleanUp();
  }
}

async function demo(
  options: DemoOptions,
  folder: string,
  closers: (() => Promise<void>)[],
  signal: AbortSignal,
): Promise<number> {
  const { context } = options;
  const style = styleFor(context, context.stdout);
  const say = (text: string) => context.stdout.write(`${text}\n`);
  const dataDir = join(folder, "state");
  const work = join(folder, "work");
  await mkdir(work);
  const stack = await startStack({
    dataDir,
    ports: { registry: 0, policy: 0, device: 0 },
    deviceName: "this",
    mode: Mode.ALL,
    readRoots: [options.folder],
    writeRoots: [work],
    env: context.env,
    logger: createLogger({ service: "reeve", level: "silent" }),
  });
  closers.push(() => stack.close());
  say(style.dim(`registry ${stack.registryUrl} · policy ${stack.policyUrl} · device agent ${stack.deviceUrl}`));

  const { agent, operator } = sessions(stack);
  const job = { folder: options.folder, reportPath: join(work, "report.md") };
  const { model, scripted } = await pickModel(options, job, closers, say);
  const toolset = await loadToolset(agent);
  const caller = createRegistryCaller({
    client: agent,
    toolset,
    purpose: "find what fills this machine's disk",
  });
  const decider = createDecider({ context, session: operator, yes: options.yes, say });
  const held = new Map<string, string>();
  const narrate = createNarrator({
    text: context.stdout,
    activity: context.stdout,
    style,
    onHeld({ callId, approvalId }) {
      say(`  ${style.yellow("held")}, until a human decides`);
      held.set(callId, approvalId);
      decider.decide(approvalId);
    },
    onReleased: (callId) => decider.withdraw(held.get(callId) ?? ""),
  });
  say(`\n${style.bold("You")}  ${demoPrompt(job)}\n`);
  const input = newRunInput({ runId: `demo-${process.pid}`, toolset, prompt: demoPrompt(job) });
  const result = await runInline(input, { model, caller, signal, onEvent: narrate });
  const calls = await listAll(operator);
  say(`\n${style.bold("What happened")}`);
  for (const line of summary(calls)) say(`  ${line}`);
  const report = await readFile(job.reportPath, "utf8").catch(() => undefined);
  say(report === undefined ? style.red("  no report was written") : `\n${style.bold("The report")}\n${indent(report)}`);

  const proved = await proveRecord({ stack, dataDir, session: operator, calls, say, style });
  return verdict({ result, calls, report, proved, scripted, say });
}

/** The agent works with its own token, the person decides with another: the gate sees two principals. */
function sessions(stack: Stack) {
  const tokens = issueFirstTokens(stack.tokens);
  if (tokens === undefined) throw new Error("the demo's folder is not new");
  const registry = (token: string) => createServiceTransport({ baseUrl: stack.registryUrl, token });
  return {
    agent: registryClient(registry(tokens.agent)),
    operator: sessionOver({
      registry: registry(tokens.operator),
      policy: createServiceTransport({ baseUrl: stack.policyUrl, token: tokens.operator }),
    }),
  };
}

async function pickModel(
  options: DemoOptions,
  job: { folder: string; reportPath: string },
  closers: (() => Promise<void>)[],
  say: (text: string) => void,
) {
  const { env } = options.context;
  if (hasKey(env) || options.model?.includes("/"))
    return { model: await modelFor(options.model, env), scripted: false };
  say(`${PROVIDERS[0].keyVariable} is not set: a scripted model plays its part, over the same API and SDK.`);
  const scripted = await startScriptedModel({ turns: demoTurns(job) });
  closers.push(() => scripted.close());
  return { model: scripted.model, scripted: true };
}

async function listAll(session: Session): Promise<CompleteCall[]> {
  const { calls } = await session.registry.listCalls({ pageSize: 250 });
  return calls.map(completeCall).reverse();
}

function summary(calls: readonly CompleteCall[]): string[] {
  return calls.map((call) => {
    const rules = call.status.decision?.ruleIds.join(", ") ?? "";
    return `${stateText(call.status.state).padEnd(10)} ${call.spec.tool.padEnd(11)} ${rules}`;
  });
}

function stateText(state: CallState): string {
  return Object.entries(CallState).find(([, value]) => value === state)?.[0] ?? String(state);
}

function indent(text: string): string {
  return text.replace(/^/gm, "  ");
}

interface Facts {
  result: AgentResult;
  calls: readonly CompleteCall[];
  report: string | undefined;
  proved: boolean;
  scripted: boolean;
  say(text: string): void;
}

/** 0 only where everything that the demo promises was seen. A real model may find its own way to the report. */
function verdict({ result, calls, report, proved, scripted, say }: Facts): number {
  const held = calls.some((call) => call.status.approval?.id !== "" && call.status.state === CallState.SUCCEEDED);
  const blocked = calls.some((call) => call.status.state === CallState.DENIED);
  const missing = [
    ...(result.kind === "done" ? [] : [`the model's run ended as ${result.kind}: ${result.error?.message ?? ""}`]),
    ...(report === undefined ? ["no report was written"] : []),
    ...(proved ? [] : ["the record did not verify"]),
    ...(scripted && !held ? ["no held call was approved and ran"] : []),
    ...(scripted && !blocked ? ["no call was blocked"] : []),
  ];
  for (const line of missing) say(`not as promised: ${line}`);
  if (missing.length === 0) say("\nEverything above went through one gate, and the record of it verifies.");
  return missing.length === 0 ? ExitCode.OK : ExitCode.TOOL_FAILED;
}
