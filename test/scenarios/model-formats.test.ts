import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { toJson } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { completeCall } from "../../client/complete-call.ts";
import { CallSpecSchema, CallState, type CallStatus } from "../../gen/ts/reeve/call/v1/call_pb.ts";
import type { AgentEvent, AgentResult } from "../../services/agent/loop/run.ts";
import { runInline } from "../../services/agent/loop/run-inline.ts";
import type { Message } from "../../services/agent/providers/model.ts";
import { newRunInput } from "../../services/agent/run-input/run-input.ts";
import { DIALECTS } from "../../services/agent/scripted-model/chat-completions/dialects.ts";
import { startScriptedChat } from "../../services/agent/scripted-model/chat-completions/format.ts";
import {
  type ScriptedModel,
  type ScriptedModelOptions,
  startScriptedModel,
} from "../../services/agent/scripted-model/server.ts";
import { createRegistryCaller } from "../../services/agent/toolbox/registry-caller.ts";
import { loadToolset } from "../../services/agent/toolset/toolset.ts";
import { approveCall, pendingApproval } from "../../testkit/approvals.ts";
import { type Caller, callerOf } from "../../testkit/clients.ts";
import { eventually } from "../../testkit/eventually.ts";
import { startTestStack, type TestStack } from "../../testkit/stack.ts";
import { formatScript } from "./model-formats.data.ts";

let stack: TestStack;
let agent: Caller;
let operator: Caller;
beforeAll(async () => {
  stack = await startTestStack();
  agent = callerOf(stack, stack.tokens.agent);
  operator = callerOf(stack, stack.tokens.operator);
  await writeFile(join(stack.workFolder, "note.txt"), "a note\n");
});
afterAll(() => stack.close());

/** What a provider's format has made of the script: how each run ended, its conversation, its events, its calls and their record. */
interface Played {
  ends: unknown[];
  conversation: unknown;
  events: unknown[];
  calls: unknown[];
}

type StartModel = (options: ScriptedModelOptions) => Promise<ScriptedModel<unknown>>;

async function play(name: string, start: StartModel): Promise<Played> {
  const { turns, prompts } = formatScript(join(stack.workFolder, "note.txt"));
  const server = await start({ turns });
  const client = agent.registry;
  const toolset = await loadToolset(client);
  const events: AgentEvent[] = [];
  const decisions: Promise<unknown>[] = [];
  const results: AgentResult[] = [];
  let messages: readonly Message[] = [];
  try {
    for (const prompt of prompts) {
      const input = newRunInput({ runId: `run-${name}`, toolset, prompt, messages });
      const caller = createRegistryCaller({ client, toolset, approvalWaitMs: 60_000 });
      const onEvent = (event: AgentEvent): void => {
        events.push(event);
        if (event.kind === "tool_report" && event.report.kind === "held") {
          decisions.push(event.id === "use_8" ? approveCall(operator, event.report.callId) : deny(event.report.callId));
        }
      };
      const result = await runInline(input, { model: server.model, caller, onEvent });
      results.push(result);
      // As it would be stored and resumed.
      messages = JSON.parse(JSON.stringify(result.messages));
    }
    await Promise.all(decisions);
    expect(server.problems).toEqual([]);
  } finally {
    await server.close();
  }
  const used = results.flatMap(({ calls }) => calls);
  const ids = used.flatMap(({ callId }) => callId ?? []);
  const same = (value: unknown): unknown => JSON.parse(withoutIds(JSON.stringify(value), ids));
  return {
    ends: results.map(({ kind, text, turns: taken, usage, calls, error }) =>
      same({ kind, text, taken, usage, calls, error }),
    ),
    conversation: same(messages.map(({ role, ...rest }) => ({ role, ...rest, native: undefined }))),
    events: same(settled(events)) as unknown[],
    calls: await Promise.all(ids.map(async (id) => same(await callAndRecord(id)))),
  };
}

async function deny(callId: string): Promise<void> {
  const { id: approvalId } = await pendingApproval(operator, callId);
  await operator.approvals.deny({ approvalId, channel: "test" });
}

/** What happened in its order; pieces of text as one text, and without what calls report while they run, at their own pace. */
function settled(events: readonly AgentEvent[]): unknown[] {
  const text = events.flatMap((event) => (event.kind === "text" ? [event.text] : [])).join("");
  const turns = events.filter(({ kind }) => kind === "turn_started" || kind === "turn_ended");
  const tools = events.filter(({ kind }) => kind === "tool_started" || kind === "tool_ended");
  const byUse = tools.toSorted((a, b) => ("id" in a && "id" in b ? a.id.localeCompare(b.id) : 0));
  return [text, turns, byUse];
}

/** A call as the registry keeps it, and what the audit log says of it. One that was refused before it was one is not kept. */
async function callAndRecord(callId: string) {
  const { calls } = await agent.registry.listCalls({ pageSize: 250 });
  const call = calls.find(({ id }) => id === callId);
  if (call === undefined) return "not kept";
  const { spec, status } = completeCall(call);
  const isRun = status.state === CallState.SUCCEEDED || status.state === CallState.FAILED;
  const entries = await eventually(async () => {
    const records = (await operator.audit.listRecords({ callId })).entries;
    // An outcome is written once its call's end is known to its caller.
    if (isRun) expect(records.at(-1)?.record?.event?.case).toBe("outcome");
    return records;
  });
  return {
    spec: toJson(CallSpecSchema, spec),
    state: stateOf(status),
    decision: status.decision?.ruleIds,
    reason: status.error?.reason,
    record: entries.map(({ record }) => {
      const event = record?.event;
      switch (event?.case) {
        case "decided":
          return ["decided", event.value.decision, event.value.reason, event.value.ruleIds, event.value.tool];
        case "outcome":
          return ["outcome", event.value.state];
        case "approvalDecided":
          return ["approval", event.value.state];
        default:
          return [event?.case];
      }
    }),
  };
}

function stateOf({ state }: CallStatus): string | undefined {
  return Object.entries(CallState).find(([, value]) => value === state)?.[0];
}

/** The text with what is new in every run made equal: ids that Reeve makes, nonces and durations. */
function withoutIds(text: string, callIds: readonly string[]): string {
  const numbered = callIds.reduce((rest, id, index) => rest.replaceAll(id, `call-${index}`), text);
  return numbered
    .replace(/apr-[0-9a-zA-Z-]+/gu, "apr")
    .replace(/(?<![0-9a-z])[0-9a-f]{24,64}(?![0-9a-z])/gu, "hex")
    .replace(/durationMs\\*":\d+/gu, "durationMs");
}

describe("one conversation with tools, as each provider streams it", () => {
  let anthropic: Played;
  beforeAll(async () => {
    anthropic = await play("anthropic", startScriptedModel);
  });

  it("over Anthropic's format runs, refuses and records what the script asks for", () => {
    expect(anthropic.ends).toMatchObject([
      { kind: "done", text: "It is Linux.", taken: 6 },
      { kind: "done", text: "Still Linux.", taken: 2 },
    ]);
    expect(anthropic.calls).toMatchObject([
      { spec: { tool: "exec", arguments: { argv: ["uname"] } }, state: "SUCCEEDED" },
      { spec: { tool: "fs.read" }, state: "SUCCEEDED" },
      { spec: { tool: "fs.read" }, state: "FAILED" },
      "not kept",
      { spec: { tool: "device.ping" }, state: "SUCCEEDED" },
      { spec: { tool: "shell.eval" }, state: "SUCCEEDED" },
      { spec: { tool: "shell.eval" }, state: "DENIED" },
      { spec: { tool: "shell.eval" }, state: "DENIED" },
      { spec: { tool: "exec", arguments: { argv: ["uname", "-s"] } }, state: "SUCCEEDED" },
    ]);
    const records = anthropic.calls.flatMap((call) => (typeof call === "object" ? [call] : []));
    expect(records.map((call) => (call as { record: unknown[] }).record.length).every((count) => count > 0)).toBe(true);
  });

  it.each(DIALECTS)("over Chat Completions as $kind.name streams it is the same", async (dialect) => {
    expect(await play(dialect.kind.name, (options) => startScriptedChat(dialect, options))).toEqual(anthropic);
  });
});
