import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it, vi } from "vitest";
import {
  DIALECTS,
  type Dialect,
  OLLAMA_DIALECT,
  OPENAI_DIALECT,
} from "../../scripted-model/chat-completions/dialects.ts";
import { startScriptedChat } from "../../scripted-model/chat-completions/format.ts";
import type { ScriptedTurn } from "../../scripted-model/script.ts";
import type { ToolDefinition } from "../../toolset/toolset.ts";
import { type Message, ModelError, type Turn, type TurnRequest } from "../model.ts";
import { type ChatModelOptions, createChatModel } from "./adapter.ts";
import { OLLAMA } from "./server-kind.ts";

let close: (() => Promise<void>) | undefined;
afterEach(async () => {
  await close?.();
  close = undefined;
  vi.unstubAllEnvs();
});

const KEY = "sk-very-secret";
const tool = (name: string, inputSchema: ToolDefinition["inputSchema"] = { type: "object" }): ToolDefinition => ({
  name,
  description: `Does ${name}.`,
  capability: name,
  requiresApproval: false,
  inputSchema,
});

const asks = (model: ReturnType<typeof createChatModel>, pieces: string[]) => (more: Partial<TurnRequest>) =>
  model.turn({
    system: "You are a test.",
    messages: [{ role: "user", text: "hello" }],
    tools: [tool("exec"), tool("fs.read")],
    signal: new AbortController().signal,
    onText: (text) => pieces.push(text),
    ...more,
  });

async function start(dialect: Dialect, turns: readonly ScriptedTurn[], more: Partial<ChatModelOptions> = {}) {
  const server = await startScriptedChat(dialect, { turns, apiKey: KEY });
  close = server.close;
  const baseUrl = `${server.url}/v1`;
  const model = createChatModel({ kind: dialect.kind, apiKey: KEY, model: "any", baseUrl, maxRetries: 0, ...more });
  const pieces: string[] = [];
  const ask = asks(model, pieces);
  return { turn: (request: Partial<TurnRequest> = {}) => ask(request), pieces, requests: server.requests };
}

/** A server that answers as a test says, and how to reach it. */
async function answering(answer: RequestListener): Promise<ChatModelOptions> {
  const server = createServer(answer).listen(0, "127.0.0.1");
  close = async () => void server.close();
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return { kind: OLLAMA, apiKey: "none", model: "any", baseUrl: `http://127.0.0.1:${port}/v1` };
}

const failure = (promise: Promise<unknown>) =>
  promise.then(
    () => expect.unreachable("the turn did not fail"),
    (error: unknown) => (error instanceof ModelError ? error : expect.unreachable("not a ModelError")),
  );

/** The conversation after a turn whose uses were answered. */
const after = ({ text, toolUses, native }: Turn, content = "done"): Message[] => [
  { role: "user", text: "hello" },
  { role: "assistant", text, toolUses, native },
  { role: "tool_results", results: toolUses.map(({ id }) => ({ toolUseId: id, content, isError: false })) },
];

describe.each(DIALECTS)("a turn as $kind.name streams it", (dialect) => {
  const uses = [
    { name: "fs_read", input: { path: "/etc/hosts" } },
    { name: "exec", input: { argv: ["uname", "-a"] } },
    { name: "exec", input: {} },
  ];

  it("is its text in pieces, every tool use apart, why it ended, and what it used", async () => {
    const usage = { input: 11, output: 22, cacheRead: 33, cacheWrite: 44 };
    const script = { thinking: "Which one?", text: "I will read both files now.", toolUses: uses, usage };
    const { turn, pieces } = await start({ ...dialect, usage: {} }, [script]);
    const { text, toolUses, stop, usage: used } = await turn();
    expect(pieces.length).toBeGreaterThan(1);
    expect([pieces.join(""), text]).toEqual([script.text, script.text]);
    expect(toolUses.map(({ name, input }) => [name, input])).toEqual([
      ["fs.read", { kind: "json", value: { path: "/etc/hosts" } }],
      ["exec", { kind: "json", value: { argv: ["uname", "-a"] } }],
      ["exec", { kind: "json", value: {} }],
    ]);
    expect(new Set(toolUses.map(({ id }) => id)).size).toBe(3);
    expect(stop).toEqual({ kind: "end" });
    expect(used).toEqual({ inputTokens: 11, outputTokens: 22, cacheReadTokens: 33, cacheWriteTokens: 44 });
  });

  it("goes back as it came, with malformed input, made-up names and ids that servers refuse", async () => {
    const odd = [
      { name: "exec", input: '{"argv":["rm","-rf","/tmp/cache', id: "functions.exec:0" },
      { name: "rm -rf / 😀", input: "[1]", id: "x".repeat(200) },
      { name: "y".repeat(300), input: {}, id: "functions.exec:0" },
    ];
    // Where uses share an index, their ids distinguish them.
    const toolUses = dialect.index === "zero" ? odd.map((use, at) => ({ ...use, id: `${use.id}${at}` })) : odd;
    const { turn, requests } = await start(dialect, [{ text: "Hm.", toolUses }, { text: "fine" }]);
    const first = await turn();
    expect(first.toolUses.map(({ input }) => input.kind)).toEqual(["malformed", "malformed", "json"]);
    expect(first.toolUses.map(({ name }) => name)).toEqual(odd.map(({ name }) => name));
    const stored: Message[] = JSON.parse(JSON.stringify(after(first)));
    expect((await turn({ messages: stored })).text).toBe("fine");
    expect(requests[1]?.messages.map(({ role }) => role)).toEqual([
      "system",
      "user",
      "assistant",
      "tool",
      "tool",
      "tool",
    ]);
  });

  it.each([
    ["max_tokens", { kind: "max_tokens" }],
    ["refusal", { kind: "refused", explanation: expect.stringMatching(/no|filter/) }],
  ] as const)("reports that it ended with %s", async (stop, expected) => {
    const { turn } = await start(dialect, [{ text: "so far", stop, explanation: "no" }]);
    expect((await turn()).stop).toEqual(expected);
  });

  it("has a malformed use where the turn's tokens ran out in its input, and whole ones before it", async () => {
    const toolUses = [
      { name: "exec", input: { argv: ["true"] } },
      { name: "exec", input: "" },
    ];
    const { turn } = await start(dialect, [{ toolUses, stop: "max_tokens" }]);
    const read = await turn();
    expect(read.stop).toEqual({ kind: "max_tokens" });
    expect(read.toolUses.map(({ input }) => input.kind)).toEqual(["json", "malformed"]);
  });

  it("may be a megabyte of text", async () => {
    const text = "x😀y".repeat(262_144);
    const { turn } = await start(dialect, [{ text }]);
    expect((await turn()).text).toBe(text);
  });

  it.each([
    [400, "invalid_request_error", "rejected"],
    [401, "authentication_error", "unauthenticated"],
    [404, "not_found_error", "rejected"],
    [429, "rate_limit_error", "rate_limited"],
    [503, "unavailable_error", "overloaded"],
    [500, "server_error", "broken"],
  ])("may be an error: %i %s", async (status, type, kind) => {
    const { turn } = await start(dialect, [{ failures: [{ status, type, message: `because of ${KEY}` }] }]);
    const error = await failure(turn());
    expect([error.kind, error.status]).toEqual([kind, status]);
    expect(error.message).toContain(`the model's provider answered ${status} ${type} because of [key]`);
    expect(`${error.stack}${JSON.stringify(error)}${String(error.cause)}`).not.toContain(KEY);
  });

  it("is tried again where it failed for now, or broke before any text came", async () => {
    const headers = { "retry-after-ms": "1" };
    const failures = [{ status: 429, type: "rate_limit_error", headers }];
    const toolUses = [{ name: "exec", input: { argv: ["true"] } }];
    const { turn, requests } = await start(dialect, [{ toolUses, failures, breaks: 1 }], { maxRetries: 2 });
    expect((await turn()).toolUses).toHaveLength(1);
    expect(requests).toHaveLength(3);
  });

  it("is not tried again where text was shown, and nothing of it is given", async () => {
    const shown = Promise.withResolvers<void>();
    const linger = () => shown.promise.then(() => Promise.reject(new Error("gone")));
    const script: ScriptedTurn = { text: "half", toolUses: [{ name: "exec", input: {} }], linger };
    const { turn, requests } = await start(dialect, [script], { maxRetries: 2 });
    expect((await failure(turn({ onText: () => shown.resolve() }))).kind).toBe("broken");
    expect(requests).toHaveLength(1);
  });

  it("is canceled in the middle of its stream, at the server too, and over when its time is", async () => {
    const gone = Promise.withResolvers<void>();
    const linger = (closed: AbortSignal) =>
      new Promise<void>((resolve) => closed.addEventListener("abort", () => resolve(), { once: true })).then(
        gone.resolve,
      );
    const abort = new AbortController();
    const { turn } = await start(dialect, [{ text: "thinking…", linger }], { timeoutMs: 100 });
    expect((await failure(turn({ signal: abort.signal, onText: () => abort.abort() }))).kind).toBe("canceled");
    await gone.promise;
    expect((await failure(turn())).kind).toBe("timed_out");
  });
});

describe("a request", () => {
  it("has the provider's names and schemas, and what this kind of server takes", async () => {
    const closed = {
      type: "object",
      properties: { a: { type: "string" } },
      required: ["a"],
      additionalProperties: false,
    };
    const tools = [tool("fs.read", { ...closed, oneOf: [{}] }), tool("exec", { ...closed, required: [] })];
    const { turn, requests } = await start(OPENAI_DIALECT, [{ text: "hi" }], { maxTokens: 50 });
    await turn({ tools });
    const parameters = (required: string[]) => ({ ...closed, required });
    expect(requests[0]).toEqual({
      model: "any",
      stream: true,
      stream_options: { include_usage: true },
      max_completion_tokens: 50,
      messages: [
        { role: "system", content: "You are a test." },
        { role: "user", content: "hello" },
      ],
      tools: [
        {
          type: "function",
          function: { name: "fs_read", description: "Does fs.read.", strict: true, parameters: parameters(["a"]) },
        },
        { type: "function", function: { name: "exec", description: "Does exec.", parameters: parameters([]) } },
      ],
    });
  });

  it("asks llama.cpp for several calls in a turn, and no server of one's own for a limit", async () => {
    const [, ollama, , llamacpp] = DIALECTS;
    const sent = [];
    for (const dialect of [ollama, llamacpp]) {
      if (dialect === undefined) continue;
      const { turn, requests } = await start(dialect, [{ text: "hi" }]);
      await turn();
      sent.push(
        Object.keys(requests[0] ?? {})
          .sort()
          .join(" "),
      );
      await close?.();
    }
    expect(sent).toEqual([
      "messages model stream stream_options tools",
      "messages model parallel_tool_calls stream stream_options tools",
    ]);
  });

  it("shortens a tool's name to 64 characters, and knows it again", async () => {
    const name = `service:${"x".repeat(100)}`;
    const { turn, requests } = await start(OPENAI_DIALECT, [
      { text: "hi" },
      { toolUses: [{ name: "to be replaced", input: {} }] },
    ]);
    await turn({ tools: [tool(name)] });
    const sent = requests[0]?.tools?.[0];
    const short = sent?.type === "function" ? sent.function.name : "";
    expect(short).toHaveLength(64);
    await close?.();
    const again = await start(OPENAI_DIALECT, [{ toolUses: [{ name: short, input: {} }] }]);
    expect((await again.turn({ tools: [tool(name)] })).toolUses[0]?.name).toBe(name);
  });

  it("can follow on a turn of another provider, and marks an error as one", async () => {
    const { turn, requests } = await start(OLLAMA_DIALECT, [{}, { text: "two" }]);
    await turn({
      messages: [
        { role: "user", text: "hello" },
        {
          role: "assistant",
          text: "",
          toolUses: [{ id: "toolu_1", name: "fs.read", input: { kind: "malformed", problem: "cut" } }],
          native: { provider: "anthropic", content: [{ type: "thinking", thinking: "x", signature: "y" }] },
        },
        { role: "tool_results", results: [{ toolUseId: "toolu_1", content: "no such file", isError: true }] },
      ],
    });
    const called = { id: "toolu_1", type: "function", function: { name: "fs_read", arguments: "{}" } };
    expect(requests[0]?.messages.slice(2)).toEqual([
      { role: "assistant", content: null, tool_calls: [called] },
      { role: "tool", tool_call_id: "toolu_1", content: "error: no such file" },
    ]);
  });

  it("never brings an id of a use a second time, because a call's id is made from it", async () => {
    const again = { toolUses: [{ name: "exec", input: {}, id: "call_0" }] };
    const { turn } = await start(OLLAMA_DIALECT, [again, again]);
    const first = await turn();
    const second = await turn({ messages: after(first) });
    expect(first.toolUses[0]?.id).toBe("call_0");
    expect(second.toolUses[0]?.id).toMatch(/^call_[0-9a-f]{24}$/);
  });

  it("takes nothing of OpenAI's from the environment to another server", async () => {
    for (const name of ["API_KEY", "ADMIN_KEY", "ORG_ID", "PROJECT_ID"])
      vi.stubEnv(`OPENAI_${name}`, `of-openai-${name}`);
    let headers: IncomingHttpHeaders = {};
    const options = await answering((request, response) => {
      headers = request.headers;
      response.writeHead(400).end("<html>no");
    });
    expect((await failure(asks(createChatModel(options), [])({}))).kind).toBe("rejected");
    expect(JSON.stringify(headers)).not.toContain("of-openai");
    expect(headers.authorization).toBe("Bearer none");
  });

  it.each([
    [{ code: 400, message: "the context is full", type: "exceed_context_size_error" }, "rejected", 1],
    [{ code: 503, message: "later", type: "unavailable_error" }, "overloaded", 2],
    [{ message: "no", type: "server_error" }, "broken", 2],
  ])("may fail in the middle of its stream: %j", async (error, kind, tries) => {
    let asked = 0;
    const options = await answering((_, response) => {
      asked++;
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.end(`data: {"choices":[]}\n\ndata: ${JSON.stringify({ error })}\n\n`);
    });
    const thrown = await failure(asks(createChatModel({ ...options, maxRetries: 1 }), [])({}));
    expect([thrown.kind, asked]).toEqual([kind, tries]);
    expect(thrown.message).toContain(error.message);
  });

  it("where no server listens names the cause and not the key", async () => {
    const { turn } = await start(OPENAI_DIALECT, [], { baseUrl: "http://127.0.0.1:9/v1", apiKey: "very-secret" });
    const error = await failure(turn());
    expect(error.kind).toBe("unreachable");
    expect(error.message).not.toContain("very-secret");
  });
});
