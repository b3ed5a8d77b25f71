import { afterEach, describe, expect, it } from "vitest";
import { addUsage, NO_USAGE } from "../../loop/budget.ts";
import type { ScriptedTurn } from "../../scripted-model/script.ts";
import { type ScriptedModel, startScriptedModel } from "../../scripted-model/server.ts";
import type { ToolDefinition } from "../../toolset/toolset.ts";
import { type Message, ModelError, type TurnRequest } from "../model.ts";
import { type AnthropicOptions, createAnthropicModel } from "./adapter.ts";

let server: ScriptedModel | undefined;
afterEach(() => server?.close());

const tool = (name: string): ToolDefinition => ({
  name,
  description: `Does ${name}. [device_mesh: ${name}]`,
  capability: name,
  requiresApproval: false,
  inputSchema: { type: "object", properties: {}, oneOf: [{ required: [] }] },
});

async function start(turns: readonly ScriptedTurn[], more: Partial<AnthropicOptions> = {}) {
  const started = await startScriptedModel({ turns, apiKey: "key" });
  server = started;
  const model = createAnthropicModel({ apiKey: "key", model: "any", baseUrl: started.url, maxRetries: 0, ...more });
  const pieces: string[] = [];
  const turn = (more_: Partial<TurnRequest> = {}) =>
    model.turn({
      system: "You are a test.",
      messages: [{ role: "user", text: "hello" }],
      tools: [tool("exec"), tool("fs.read")],
      signal: new AbortController().signal,
      onText: (text) => pieces.push(text),
      ...more_,
    });
  return { turn, pieces, requests: started.requests };
}

const failure = (promise: Promise<unknown>) =>
  promise.then(
    () => expect.unreachable("the turn did not fail"),
    (error: unknown) => (error instanceof ModelError ? error : expect.unreachable("not a ModelError")),
  );

describe("a turn", () => {
  it("streams its text in pieces and reports tool uses, reason and usage", async () => {
    const usage = { input: 11, output: 22, cacheRead: 33, cacheWrite: 44 };
    const toolUses = [
      { name: "fs_read", input: { path: "/etc/hosts" } },
      { name: "exec", input: { argv: ["uname", "-a"] } },
    ];
    const { turn, pieces } = await start([{ text: "I will read both files now.", toolUses, usage }]);
    const { text, toolUses: uses, stop, usage: used } = await turn();
    expect(pieces.length).toBeGreaterThan(1);
    expect(pieces.join("")).toBe(text);
    expect(text).toBe("I will read both files now.");
    expect(uses.map(({ name, input }) => [name, input])).toEqual([
      ["fs.read", { kind: "json", value: { path: "/etc/hosts" } }],
      ["exec", { kind: "json", value: { argv: ["uname", "-a"] } }],
    ]);
    expect(stop).toEqual({ kind: "end" });
    expect(used).toEqual({ inputTokens: 11, outputTokens: 22, cacheReadTokens: 33, cacheWriteTokens: 44 });
  });

  it("costs what its tokens do where the price is known, and a run the sum of its turns", async () => {
    const usage = { input: 1000, output: 10, cacheRead: 100 };
    const prices = [{ input: 4, output: 20, cacheRead: 0.2 }];
    const { turn } = await start([{ text: "hi", usage }], { prices });
    const { usage: used } = await turn();
    expect(used.costUsdMicros).toBe(4000 + 200 + 20);
    expect(addUsage(addUsage(NO_USAGE, used), used).costUsdMicros).toBe(2 * 4220);
    const { costUsdMicros: _, ...unpriced } = used;
    expect(addUsage(used, unpriced)).not.toHaveProperty("costUsdMicros");
  });

  it("gives the provider its own names and schemas, and marks for its cache", async () => {
    const { turn, requests } = await start([{ text: "hi" }], { model: "some-model", maxTokens: 50 });
    await turn();
    const ephemeral = { cache_control: { type: "ephemeral" } };
    expect(requests[0]).toMatchObject({
      model: "some-model",
      max_tokens: 50,
      stream: true,
      system: [{ type: "text", text: "You are a test.", ...ephemeral }],
      messages: [{ role: "user", content: [{ type: "text", text: "hello", ...ephemeral }] }],
    });
    expect(requests[0]?.tools).toEqual([
      { name: "exec", description: "Does exec. [device_mesh: exec]", input_schema: { type: "object", properties: {} } },
      {
        name: "fs_read",
        description: "Does fs.read. [device_mesh: fs.read]",
        input_schema: { type: "object", properties: {} },
        ...ephemeral,
      },
    ]);
  });

  it("marks nothing where the cache is off", async () => {
    const { turn, requests } = await start([{ text: "hi" }], { cache: false });
    await turn({ tools: [], system: "" });
    expect(JSON.stringify(requests[0])).not.toContain("cache_control");
    expect(requests[0]).not.toHaveProperty("tools");
    expect(requests[0]).not.toHaveProperty("system");
  });

  it("gets its thinking back unchanged, and results before what the user says next", async () => {
    const { turn, requests } = await start([
      { thinking: "I should look.", text: "Looking.", toolUses: [{ name: "exec", input: {}, id: "toolu_a" }] },
      { text: "Done." },
    ]);
    const first = await turn();
    const messages: Message[] = [
      { role: "user", text: "hello" },
      { role: "assistant", text: first.text, toolUses: first.toolUses, native: first.native },
      { role: "tool_results", results: [{ toolUseId: "toolu_a", content: "error: timed_out: x", isError: true }] },
      { role: "user", text: "and now?" },
    ];
    const stored: Message[] = JSON.parse(JSON.stringify(messages));
    await turn({ messages: stored });
    expect(requests[1]?.messages.slice(1)).toMatchObject([
      {
        role: "assistant",
        content: [
          { type: "thinking", thinking: "I should look.", signature: expect.stringMatching(/./) },
          { type: "text", text: "Looking." },
          { type: "tool_use", id: "toolu_a", name: "exec", input: {} },
        ],
      },
      {
        role: "user",
        content: [
          { type: "tool_result", tool_use_id: "toolu_a", content: "error: timed_out: x", is_error: true },
          { type: "text", text: "and now?" },
        ],
      },
    ]);
    expect(stored).toEqual(messages);
  });

  it("can follow on a turn of another provider", async () => {
    const { turn, requests } = await start([{ text: "one" }, { text: "two" }]);
    await turn({
      messages: [
        { role: "user", text: "hello" },
        {
          role: "assistant",
          text: "Reading.",
          toolUses: [{ id: "call-1", name: "fs.read", input: { kind: "json", value: { path: "/" } } }],
          native: { provider: "other", content: [{ secret: true }] },
        },
        { role: "tool_results", results: [{ toolUseId: "call-1", content: "x", isError: false }] },
      ],
    });
    expect(requests[0]?.messages[1]?.content).toEqual([
      { type: "text", text: "Reading." },
      { type: "tool_use", id: "call-1", name: "fs_read", input: { path: "/" } },
    ]);
  });

  it.each([
    ["max_tokens", { kind: "max_tokens" }],
    ["pause_turn", { kind: "paused" }],
    ["model_context_window_exceeded", { kind: "context_full" }],
    ["refusal", { kind: "refused", explanation: "no" }],
  ] as const)("reports that it ended with %s", async (stop, expected) => {
    const { turn } = await start([{ text: "so far", stop, explanation: "no" }]);
    expect((await turn()).stop).toEqual(expected);
  });
});

describe("what a hostile model writes", () => {
  it("is a malformed use where the input is no JSON, never a mended one", async () => {
    const toolUses = [
      { name: "exec", input: '{"argv":["rm","-rf","/tmp/cache' },
      { name: "exec", input: "[1,2]" },
      { name: "exec", input: {} },
    ];
    const { turn } = await start([{ toolUses }]);
    expect((await turn()).toolUses.map(({ input }) => input.kind)).toEqual(["malformed", "malformed", "json"]);
  });

  it("is a malformed use where the turn's tokens ran out before the input began", async () => {
    const { turn } = await start([{ toolUses: [{ name: "exec", input: "" }], stop: "max_tokens" }]);
    expect((await turn()).toolUses[0]?.input).toMatchObject({
      kind: "malformed",
      problem: expect.stringMatching(/cut off/),
    });
  });

  it("keeps made-up names and ids from breaking the next request", async () => {
    const names = ["does_not_exist", "rm -rf / ; \u0000😀", "x".repeat(300), ""];
    const toolUses = names.map((name) => ({ name, input: {}, id: name === "" ? "" : "same" }));
    const { turn, requests } = await start([{ toolUses }, { text: "fine" }]);
    const first = await turn();
    expect(first.toolUses.map(({ name }) => name)).toEqual(names);
    expect(new Set(first.toolUses.map(({ id }) => id)).size).toBe(4);
    const results = first.toolUses.map(({ id }) => ({ toolUseId: id, content: "error: unknown_tool", isError: true }));
    await turn({
      messages: [
        { role: "user", text: "hello" },
        { role: "assistant", text: "", toolUses: first.toolUses, native: first.native },
        { role: "tool_results", results },
      ],
    });
    expect(requests).toHaveLength(2);
  });

  it("may be a megabyte of text", async () => {
    const text = "x😀y".repeat(262_144);
    const { turn } = await start([{ text }]);
    expect((await turn()).text).toBe(text);
  });
});

describe("a turn that fails", () => {
  it.each([
    [400, "invalid_request_error", "rejected"],
    [401, "authentication_error", "unauthenticated"],
    [403, "permission_error", "unauthenticated"],
    [404, "not_found_error", "rejected"],
    [429, "rate_limit_error", "rate_limited"],
    [529, "overloaded_error", "overloaded"],
    [500, "api_error", "broken"],
  ])("with %i says so in words that can be shown", async (status, type, kind) => {
    const { turn } = await start([{ failures: [{ status, type, message: "because" }] }]);
    const error = await failure(turn());
    expect([error.kind, error.status]).toEqual([kind, status]);
    expect(error.message).toMatch(
      new RegExp(`^the model's provider answered ${status} ${type} because \\(request req_`),
    );
  });

  it("is tried again where it was refused for now", async () => {
    const headers = { "retry-after-ms": "1" };
    const { turn } = await start(
      [
        {
          text: "at last",
          failures: [
            { status: 429, type: "rate_limit_error", headers },
            { status: 529, type: "overloaded_error", headers },
          ],
        },
      ],
      { maxRetries: 2 },
    );
    expect((await turn()).text).toBe("at last");
  });

  it("is tried again where the stream broke before any text came", async () => {
    const toolUses = [{ name: "exec", input: { argv: ["true"] } }];
    const { turn, requests } = await start([{ toolUses, breaks: 1 }], { maxRetries: 1 });
    expect((await turn()).toolUses).toHaveLength(1);
    expect(requests).toHaveLength(2);
  });

  it("is not tried again where text was shown, and nothing of it is given", async () => {
    const shown = Promise.withResolvers<void>();
    const linger = () => shown.promise.then(() => Promise.reject(new Error("gone")));
    const turns: ScriptedTurn[] = [{ text: "half", toolUses: [{ name: "exec", input: {} }], linger }];
    const { turn, pieces, requests } = await start(turns, { maxRetries: 2 });
    const onText = (text: string) => {
      pieces.push(text);
      shown.resolve();
    };
    expect((await failure(turn({ onText }))).kind).toBe("broken");
    expect(pieces.join("")).toBe("half");
    expect(requests).toHaveLength(1);
  });

  it("with tools whose names collide is refused before anything is sent", async () => {
    const { turn, requests } = await start([{ text: "hi" }]);
    const error = await failure(turn({ tools: [tool("fs.read"), tool("fs_read")] }));
    expect([error.kind, error.message]).toEqual(["rejected", expect.stringMatching(/would both be called "fs_read"/)]);
    expect(requests).toEqual([]);
  });

  it("where no server listens names the cause and not the key", async () => {
    const { turn } = await start([], { baseUrl: "http://127.0.0.1:9", apiKey: "very-secret" });
    const error = await failure(turn());
    expect(error.kind).toBe("unreachable");
    expect(error.message).not.toContain("very-secret");
  });
});

/** Stays until the client closes. */
const untilClosed = (closed: AbortSignal): Promise<void> =>
  new Promise((resolve) => closed.addEventListener("abort", () => resolve(), { once: true }));

describe("a turn that is not waited for", () => {
  it("is canceled in the middle of its stream, at the provider too", async () => {
    const gone = Promise.withResolvers<void>();
    const abort = new AbortController();
    const { turn } = await start([{ text: "thinking…", linger: (closed) => untilClosed(closed).then(gone.resolve) }]);
    const error = await failure(turn({ signal: abort.signal, onText: () => abort.abort() }));
    expect(error.kind).toBe("canceled");
    await gone.promise;
  });

  it("is over when its time is", async () => {
    const { turn } = await start([{ text: "thinking…", linger: untilClosed }], { timeoutMs: 50 });
    expect((await failure(turn())).kind).toBe("timed_out");
  });
});
