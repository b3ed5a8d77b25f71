import type { JsonObject } from "@bufbuild/protobuf";
import { afterEach, describe, expect, it } from "vitest";
import { createAnthropicModel } from "../providers/anthropic/adapter.ts";
import { newRunInput, type RunRequest } from "../run-input/run-input.ts";
import type { ScriptedTurn } from "../scripted-model/script.ts";
import { type ScriptedModel, startScriptedModel } from "../scripted-model/server.ts";
import { devicelessToolset } from "../testdata/deviceless-toolset.ts";
import type { ToolCaller } from "../toolbox/followed-toolbox.ts";
import type { ToolCall, ToolResult } from "../toolbox/toolbox.ts";
import type { Toolset } from "../toolset/toolset.ts";
import type { AgentEvent } from "./run.ts";
import { type InlinePorts, runInline } from "./run-inline.ts";

let server: ScriptedModel | undefined;
afterEach(async () => {
  expect(server?.problems).toEqual([]);
  await server?.close();
});

/** Tools, and who calls them. */
interface Tools {
  toolset: Toolset;
  caller: ToolCaller;
}

type Call = ToolCall & { signal: AbortSignal };

/** Tools that do what a test says. */
function toolboxOf(tools: Record<string, (call: Call) => Promise<ToolResult> | ToolResult>): Tools {
  return {
    toolset: devicelessToolset(Object.keys(tools)),
    caller: {
      async call(call, signal) {
        const run = tools[call.name];
        if (run === undefined) throw new Error("called with a tool it does not have");
        return run({ ...call, signal });
      },
    },
  };
}

const ok = (content: string): ToolResult => ({
  content,
  isError: false,
  callId: `call-${content}`,
  state: "succeeded",
});

type More = Partial<RunRequest> & Pick<InlinePorts, "signal" | "onEvent">;

async function start(turns: readonly ScriptedTurn[], toolbox: Tools = toolboxOf({}), more: More = {}) {
  const started = await startScriptedModel({ turns });
  server = started;
  const events: AgentEvent[] = [];
  const { signal, onEvent = (event: AgentEvent) => events.push(event), ...request } = more;
  const run = runInline(newRunInput({ runId: "run-1", toolset: toolbox.toolset, prompt: "Do it.", ...request }), {
    model: createAnthropicModel({ apiKey: "key", model: "any", baseUrl: started.url, maxRetries: 0 }),
    caller: toolbox.caller,
    onEvent,
    ...(signal && { signal }),
  });
  return { run, events, requests: started.requests };
}

/** What the model was given in the request with this index, in the order of the blocks. */
function resultsIn(request: { messages: readonly { content: unknown }[] } | undefined): unknown[] {
  const content = request?.messages.at(-1)?.content;
  return Array.isArray(content) ? content.map((block: JsonObject) => ({ ...block, cache_control: undefined })) : [];
}

const call = (name: string, input: JsonObject | string = {}, id?: string) =>
  id === undefined ? { name, input } : { name, input, id };

describe("a run", () => {
  it("ends when the model is done, and reports what it said as it came", async () => {
    const { run, events } = await start([{ text: "Nothing needs to be done." }]);
    const result = await run;
    expect(result).toMatchObject({ kind: "done", text: "Nothing needs to be done.", turns: 1, calls: [] });
    const text = events.flatMap((event) => (event.kind === "text" ? [event.text] : []));
    expect(text.length).toBeGreaterThan(1);
    expect(text.join("")).toBe("Nothing needs to be done.");
  });

  it("uses tools until the model is done, and adds up what it used", async () => {
    const { run, requests } = await start(
      [
        { text: "Looking.", toolUses: [call("fs_read", { path: "/etc/hosts" })], usage: { input: 10, output: 5 } },
        { text: "It says: localhost.", usage: { input: 20, output: 6, cacheRead: 100 } },
      ],
      toolboxOf({ "fs.read": ({ input }) => ok(`read ${JSON.stringify(input)}`) }),
    );
    const result = await run;
    expect(result).toMatchObject({ kind: "done", text: "It says: localhost.", turns: 2 });
    expect(result.usage).toEqual({ inputTokens: 30, outputTokens: 11, cacheReadTokens: 100, cacheWriteTokens: 0 });
    expect(result.calls).toEqual([
      {
        toolUseId: expect.any(String),
        tool: "fs.read",
        isError: false,
        callId: expect.stringMatching(/^call-read/),
        state: "succeeded",
      },
    ]);
    expect(resultsIn(requests[1])).toMatchObject([
      { type: "tool_result", content: 'read {"path":"/etc/hosts"}', is_error: false },
    ]);
  });

  it("runs the tools of one turn at the same time and answers them in order, in one message", async () => {
    const both = Promise.withResolvers<void>();
    const finished: string[] = [];
    const slow = async () => {
      await both.promise;
      finished.push("slow");
      return ok("slow");
    };
    const quick = () => {
      finished.push("quick");
      both.resolve();
      return ok("quick");
    };
    const { run, requests } = await start(
      [{ toolUses: [call("slow", {}, "toolu_1"), call("quick", {}, "toolu_2")] }, { text: "Both." }],
      toolboxOf({ slow, quick }),
    );
    expect((await run).kind).toBe("done");
    expect(finished).toEqual(["quick", "slow"]);
    expect(resultsIn(requests[1])).toMatchObject([
      { tool_use_id: "toolu_1", content: "slow" },
      { tool_use_id: "toolu_2", content: "quick" },
    ]);
  });

  it("gives errors to the model as they are, and lets it go on", async () => {
    const content = "error: policy_blocked: never\nrules: block-recursive-delete";
    const { run, requests } = await start(
      [{ toolUses: [call("exec", { argv: ["rm", "-rf", "/"] })] }, { text: "I will not do that." }],
      toolboxOf({ exec: () => ({ content, isError: true, callId: "c", state: "denied" }) }),
    );
    expect(await run).toMatchObject({ kind: "done", calls: [{ isError: true, state: "denied" }] });
    expect(resultsIn(requests[1])).toMatchObject([{ content, is_error: true }]);
  });

  it("reports what happens to a call while it runs", async () => {
    const { run, events } = await start(
      [{ toolUses: [call("exec", { argv: ["ls"] }, "toolu_1")] }, { text: "Done." }],
      toolboxOf({
        exec: ({ onEvent }) => {
          onEvent?.({ kind: "sent", callId: "c1" });
          onEvent?.({ kind: "held", callId: "c1", approvalId: "apr-1" });
          return ok("listed");
        },
      }),
    );
    await run;
    const about = { id: "toolu_1", tool: "exec" };
    expect(events.filter(({ kind }) => kind.startsWith("tool_"))).toEqual([
      { kind: "tool_started", ...about, input: { argv: ["ls"] } },
      { kind: "tool_report", ...about, report: { kind: "sent", callId: "c1" } },
      { kind: "tool_report", ...about, report: { kind: "held", callId: "c1", approvalId: "apr-1" } },
      { kind: "tool_ended", ...about, result: ok("listed") },
    ]);
  });

  it("can be resumed with its messages", async () => {
    const turns = [{ toolUses: [call("exec")] }, { text: "First." }, { text: "Second." }];
    const toolbox = toolboxOf({ exec: () => ok("x") });
    const { run, requests } = await start(turns, toolbox);
    const { messages } = await run;
    const model = createAnthropicModel({ apiKey: "key", model: "any", baseUrl: server?.url ?? "" });
    const input = newRunInput({
      runId: "run-2",
      toolset: toolbox.toolset,
      messages: JSON.parse(JSON.stringify(messages)),
      prompt: "And now?",
    });
    const next = await runInline(input, { model, caller: toolbox.caller });
    expect(next).toMatchObject({ kind: "done", text: "Second.", turns: 1 });
    expect(requests.at(-1)?.messages).toHaveLength(5);
  });
});

describe("what a model gets wrong", () => {
  it("is answered to the model: unknown tools, broken input, weird names", async () => {
    const { run, requests } = await start(
      [
        {
          toolUses: [
            call("does_not_exist"),
            call("exec", '{"argv":["rm","-rf","/tmp/c'),
            call("../../bin/sh\u001b[31m"),
            call("__proto__"),
            call("exec", { argv: ["true"] }),
          ],
        },
        { text: "Sorry." },
      ],
      toolboxOf({ exec: ({ input }) => ok(JSON.stringify(input)) }),
    );
    expect(await run).toMatchObject({ kind: "done", text: "Sorry." });
    expect(resultsIn(requests[1])).toMatchObject([
      { content: 'error: unknown_tool: no tool "does_not_exist"\navailable: exec', is_error: true },
      { content: expect.stringMatching(/^error: invalid_input: /), is_error: true },
      { content: expect.stringMatching(/^error: unknown_tool: no tool "\.\.\/\.\.\/bin\/sh/), is_error: true },
      { content: expect.stringMatching(/^error: unknown_tool: no tool "__proto__"/), is_error: true },
      { content: '{"argv":["true"]}', is_error: false },
    ]);
  });

  it("does not end the run where a tool throws, and does not leak what was thrown", async () => {
    const { run, requests } = await start(
      [{ toolUses: [call("exec")] }, { text: "Hm." }],
      toolboxOf({ exec: () => Promise.reject(new Error("token=abc")) }),
    );
    expect((await run).kind).toBe("done");
    expect(resultsIn(requests[1])).toMatchObject([
      { content: "error: internal: something unexpected happened", is_error: true },
    ]);
  });
});

describe("limits", () => {
  const exec = toolboxOf({ exec: () => ok("x") });
  const forever: ScriptedTurn[] = Array(10).fill({ toolUses: [call("exec")], usage: { input: 60, output: 40 } });

  it("end a run after so many turns, without running what no turn would read", async () => {
    const { run } = await start(forever, exec, { limits: { maxTurns: 3 } });
    const result = await run;
    expect(result).toMatchObject({ kind: "turn_limit", turns: 3 });
    expect(result.calls.map(({ isError }) => isError)).toEqual([false, false, true]);
    expect(result.messages.at(-1)).toMatchObject({
      role: "tool_results",
      results: [{ content: "error: not_started: the run ended at its turn limit", isError: true }],
    });
  });

  it("end a run after so many tokens", async () => {
    const { run } = await start(forever, exec, { limits: { maxTokens: 150 } });
    expect(await run).toMatchObject({ kind: "token_limit", turns: 2, calls: [{ isError: false }, { isError: true }] });
  });

  it("answer further tool uses with an error, so that the model can finish", async () => {
    const turns = [{ toolUses: [call("exec"), call("exec"), call("exec")] }, { text: "Enough." }];
    const { run } = await start(turns, exec, { limits: { maxToolCalls: 2 } });
    const result = await run;
    expect(result).toMatchObject({ kind: "done", text: "Enough." });
    expect(result.calls.map(({ isError }) => isError)).toEqual([false, false, true]);
  });

  it("keep calls of one turn from running all at once", async () => {
    let running = 0;
    let most = 0;
    const slow = async () => {
      most = Math.max(most, ++running);
      await new Promise((resolve) => setImmediate(resolve));
      running--;
      return ok("x");
    };
    const turns = [{ toolUses: Array(10).fill(call("exec")) }, { text: "Done." }];
    const { run } = await start(turns, toolboxOf({ exec: slow }), { limits: { maxParallel: 3 } });
    expect((await run).calls).toHaveLength(10);
    expect(most).toBe(3);
  });
});

describe("how a turn stopped", () => {
  it("goes on after a pause without a word of its own", async () => {
    const { run, requests } = await start([{ text: "Let me", stop: "pause_turn" }, { text: "Done." }]);
    expect(await run).toMatchObject({ kind: "done", text: "Done.", turns: 2 });
    expect(requests[1]?.messages.at(-1)?.role).toBe("assistant");
  });

  it("goes on after a cut-off text and puts the pieces together", async () => {
    const { run } = await start([{ text: "One, ", stop: "max_tokens" }, { text: "two." }]);
    expect(await run).toMatchObject({ kind: "done", text: "One, two.", turns: 2 });
  });

  it("is an error where a turn's tokens held no answer", async () => {
    const { run } = await start([{ thinking: "very long", stop: "max_tokens" }]);
    expect(await run).toMatchObject({ kind: "error", error: { message: "one turn's tokens held no answer" } });
  });

  it("ends a run that is refused, runs none of its tools and keeps the conversation as it was", async () => {
    const toolUses = [call("exec")];
    const toolbox = toolboxOf({ exec: () => expect.unreachable("a refused turn's tool was used") });
    const { run } = await start([{ text: "I", toolUses, stop: "refusal", explanation: "not this" }], toolbox);
    expect(await run).toMatchObject({
      kind: "refused",
      text: "not this",
      calls: [],
      messages: [{ role: "user", text: "Do it." }],
    });
  });

  it("ends a run whose conversation does not fit any more", async () => {
    const { run } = await start([{ text: "too", stop: "model_context_window_exceeded" }]);
    expect(await run).toMatchObject({ kind: "token_limit", text: "too" });
  });

  it("ends a run whose model fails, with the error", async () => {
    const { run } = await start([
      { failures: [{ status: 401, type: "authentication_error", message: "invalid x-api-key" }] },
    ]);
    expect(await run).toMatchObject({ kind: "error", error: { kind: "unauthenticated", status: 401 } });
  });
});

describe("canceling", () => {
  it("cancels the calls that run, waits for their ends and answers every use", async () => {
    const abort = new AbortController();
    const ended: string[] = [];
    const until = ({ id, signal }: Call) =>
      new Promise<ToolResult>((resolve) => {
        signal.addEventListener("abort", () => {
          // The device needs a moment to kill what it runs.
          setImmediate(() => {
            ended.push(id);
            resolve({ content: "error: canceled: by the caller", isError: true, state: "canceled" });
          });
        });
        if (id === "toolu_2") abort.abort();
      });
    const toolUses = [call("exec", {}, "toolu_1"), call("exec", {}, "toolu_2"), call("exec", {}, "toolu_3")];
    const { run, requests } = await start([{ toolUses }], toolboxOf({ exec: until }), {
      signal: abort.signal,
      limits: { maxParallel: 2 },
    });
    const result = await run;
    expect(result).toMatchObject({ kind: "canceled", turns: 1 });
    expect(ended.toSorted()).toEqual(["toolu_1", "toolu_2"]);
    expect(result.messages.at(-1)).toMatchObject({
      results: [
        { content: "error: canceled: by the caller" },
        { content: "error: canceled: by the caller" },
        { content: "error: canceled: the run was canceled before this call was sent" },
      ],
    });
    expect(requests).toHaveLength(1);
  });

  it("ends a turn of the model in its middle", async () => {
    const abort = new AbortController();
    const linger = (closed: AbortSignal) =>
      new Promise<void>((resolve) => closed.addEventListener("abort", () => resolve(), { once: true }));
    const { run } = await start([{ text: "I was about to", linger }], toolboxOf({}), {
      signal: abort.signal,
      onEvent: (event) => event.kind === "text" && abort.abort(),
    });
    expect(await run).toMatchObject({ kind: "canceled", messages: [{ role: "user" }] });
  });

  it("asks nothing where it was canceled before it began", async () => {
    const { run, requests } = await start([{ text: "hi" }], toolboxOf({}), { signal: AbortSignal.abort() });
    expect(await run).toMatchObject({ kind: "canceled", turns: 0 });
    expect(requests).toEqual([]);
  });
});
