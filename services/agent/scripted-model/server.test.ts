import { afterEach, describe, expect, it } from "vitest";
import type { ScriptedTurn } from "./script.ts";
import { type ScriptedModel, type ScriptedModelOptions, startScriptedModel } from "./server.ts";

let model: ScriptedModel | undefined;
afterEach(() => model?.close());

const HEADERS = { "content-type": "application/json", "x-api-key": "key", "anthropic-version": "2026-10-21" };
const user = { role: "user", content: "hello" };
const request = { model: "any", max_tokens: 100, messages: [user] };
const use = { type: "tool_use", id: "toolu_1", name: "exec", input: {} };
const result = { type: "tool_result", tool_use_id: "toolu_1", content: "done" };

async function start(turns: readonly ScriptedTurn[], more: Partial<ScriptedModelOptions> = {}) {
  const started = await startScriptedModel({ turns, ...more });
  model = started;
  return (body: unknown, headers: Record<string, string> = HEADERS, path = "/v1/messages") =>
    fetch(`${started.url}${path}`, {
      method: "POST",
      headers,
      body: typeof body === "string" ? body : JSON.stringify(body),
    });
}

/** The events of a streamed answer. */
async function events(response: Response) {
  const blocks = (await response.text()).split("\n\n").filter((block) => block !== "");
  return blocks.map((block) => {
    const [, name, data] = /^event: (\S+)\ndata: (.*)$/.exec(block) ?? [];
    return { name, data: JSON.parse(data ?? "null") };
  });
}

describe("a streamed answer", () => {
  it("has the event sequence of the Messages API, text and JSON in pieces", async () => {
    const post = await start([
      {
        text: "I will look.",
        toolUses: [{ name: "exec", input: { argv: ["df", "-k"] } }],
        usage: { input: 7, output: 9 },
      },
    ]);
    const response = await post({ ...request, stream: true });
    expect(response.headers.get("content-type")).toBe("text/event-stream; charset=utf-8");
    expect(response.headers.get("request-id")).toMatch(/^req_/);
    const all = await events(response);
    expect(all.every(({ name, data }) => name === data.type)).toBe(true);
    const names = all.map(({ name }) => name);
    expect(names.filter((name, at) => name !== names[at - 1])).toEqual([
      "message_start",
      "ping",
      "content_block_start",
      "content_block_delta",
      "content_block_stop",
      "content_block_start",
      "content_block_delta",
      "content_block_stop",
      "message_delta",
      "message_stop",
    ]);
    const deltas = all.filter(({ name }) => name === "content_block_delta").map(({ data }) => data);
    expect(deltas.filter(({ index }) => index === 0).length).toBeGreaterThan(1);
    expect(deltas.map(({ delta }) => delta.text ?? "").join("")).toBe("I will look.");
    expect(deltas.map(({ delta }) => delta.partial_json ?? "").join("")).toBe('{"argv":["df","-k"]}');
    expect(all.at(-2)?.data).toMatchObject({
      delta: { stop_reason: "tool_use", stop_sequence: null },
      usage: { input_tokens: 7, output_tokens: 9 },
    });
  });
});

describe("an answer without streaming", () => {
  it("is the whole message", async () => {
    const post = await start([{ thinking: "hm", text: "Hello." }]);
    expect(await (await post(request)).json()).toMatchObject({
      type: "message",
      role: "assistant",
      model: "any",
      stop_reason: "end_turn",
      content: [
        { type: "thinking", thinking: "hm", signature: expect.any(String) },
        { type: "text", text: "Hello." },
      ],
    });
  });
});

describe("the script", () => {
  it("plays the turn that the conversation has come to, however often it is asked", async () => {
    const post = await start([{ text: "one" }, { text: "two" }]);
    const second = { ...request, messages: [user, { role: "assistant", content: "one" }, user] };
    const texts = [];
    for (const body of [second, request, request]) texts.push((await (await post(body)).json()).content[0].text);
    expect(texts).toEqual(["two", "one", "one"]);
  });

  it("makes text and input from the results that it sees", async () => {
    const turn: ScriptedTurn = {
      text: ({ results }) => `I saw ${results[0]?.name} say ${results[0]?.content}`,
      toolUses: [{ name: "fs_write", input: ({ results }) => ({ failed: results[0]?.isError ?? true }) }],
    };
    const post = await start([{}, turn]);
    const messages = [user, { role: "assistant", content: [use] }, { role: "user", content: [result] }];
    const { content } = await (await post({ ...request, messages })).json();
    expect(content).toMatchObject([{ text: "I saw exec say done" }, { name: "fs_write", input: { failed: false } }]);
  });

  it("answers an error that is not tried again where it has no turn or did not expect the request", async () => {
    const post = await start([
      {
        expect: () => {
          throw new Error("no tools were offered");
        },
      },
    ]);
    const unexpected = await post(request);
    expect(unexpected.status).toBe(500);
    expect(unexpected.headers.get("x-should-retry")).toBe("false");
    expect((await unexpected.json()).error.message).toContain("no tools were offered");
    expect(model?.problems.map(({ message }) => message)).toEqual(["no tools were offered"]);
    const over = await post({ ...request, messages: [user, { role: "assistant", content: "x" }, user] });
    expect((await over.json()).error.message).toBe("the script has no turn 2");
  });

  it("answers scripted failures first, in the API's form", async () => {
    const post = await start([
      {
        text: "at last",
        failures: [
          { status: 429, type: "rate_limit_error", message: "slow down", headers: { "retry-after": "1" } },
          { status: 529, type: "overloaded_error" },
        ],
      },
    ]);
    const limited = await post(request);
    expect([limited.status, limited.headers.get("retry-after")]).toEqual([429, "1"]);
    expect(await limited.json()).toEqual({
      type: "error",
      error: { type: "rate_limit_error", message: "slow down" },
      request_id: limited.headers.get("request-id"),
    });
    expect((await post(request)).status).toBe(529);
    expect((await post(request)).status).toBe(200);
  });
});

describe("access", () => {
  it.each([
    ["no key", { "anthropic-version": "2026-10-21" }, 401, "authentication_error"],
    ["a wrong key", { ...HEADERS, "x-api-key": "other" }, 401, "authentication_error"],
    ["no version", { "x-api-key": "key" }, 400, "invalid_request_error"],
  ])("refuses %s", async (_, headers, status, type) => {
    const post = await start([{ text: "hi" }], { apiKey: "key" });
    const response = await post(request, headers as Record<string, string>);
    expect([response.status, (await response.json()).error.type]).toEqual([status, type]);
    expect(model?.requests).toEqual([]);
  });

  it("takes the key as a bearer token too, which is how the SDK sends it", async () => {
    const post = await start([{ text: "hi" }], { apiKey: "key" });
    expect((await post(request, { authorization: "Bearer key", "anthropic-version": "2026-10-21" })).status).toBe(200);
  });

  it("answers 404 to anything else, and listens on the loopback interface only", async () => {
    const post = await start([{ text: "hi" }]);
    expect((await post(request, HEADERS, "/v1/complete")).status).toBe(404);
    expect(model?.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
  });
});

const tool = { name: "exec", input_schema: { type: "object" } };
const asked = { role: "assistant", content: [use] };

const searched = { type: "server_tool_use", id: "srv_1", name: "tool_search_tool_bm25", input: { query: "x" } };
const found = {
  type: "tool_search_tool_result",
  tool_use_id: "srv_1",
  content: { type: "tool_search_tool_search_result", tool_references: [{ type: "tool_reference", tool_name: "none" }] },
};

const REFUSED: [what: string, body: unknown, message: RegExp][] = [
  ["what is not JSON", "{", /not valid JSON/],
  ["what is not an object", [], /valid dictionary/],
  ["no max_tokens", { ...request, max_tokens: undefined }, /^max_tokens: Field required$/],
  ["max_tokens of 0", { ...request, max_tokens: 0 }, /^max_tokens: /],
  ["no model", { ...request, model: undefined }, /^model: Field required$/],
  ["no messages", { ...request, messages: [] }, /at least one message/],
  ["an assistant first", { ...request, messages: [asked] }, /first message must use the "user" role/],
  ["another role", { ...request, messages: [{ role: "tool", content: "x" }] }, /role: Input should be/],
  ["empty content", { ...request, messages: [{ role: "user", content: "" }] }, /non-empty content/],
  [
    "an empty text block",
    { ...request, messages: [{ role: "user", content: [{ type: "text", text: " " }] }] },
    /non-whitespace/,
  ],
  [
    "a tool name with a dot",
    { ...request, tools: [{ ...tool, name: "fs.read" }] },
    /^tools\.0\.custom\.name: String should match/,
  ],
  ["a tool twice", { ...request, tools: [tool, tool] }, /must be unique/],
  [
    "only tools that wait to be found",
    { ...request, tools: [{ ...tool, defer_loading: true }] },
    /must be non-deferred/,
  ],
  [
    "tools that nothing finds",
    { ...request, tools: [tool, { ...tool, name: "other", defer_loading: true }] },
    /no tool search/,
  ],
  [
    "a mark on a tool that waits to be found",
    { ...request, tools: [tool, { ...tool, name: "b", defer_loading: true, cache_control: { type: "ephemeral" } }] },
    /cannot have cache_control/,
  ],
  [
    "a search without its result",
    { ...request, messages: [user, { role: "assistant", content: [searched] }, user] },
    /without its result/,
  ],
  [
    "a found tool that there is not",
    { ...request, messages: [user, { role: "assistant", content: [searched, found] }, user] },
    /Tool reference .* not found/,
  ],
  ["a schema without type", { ...request, tools: [{ ...tool, input_schema: {} }] }, /input_schema\.type/],
  [
    "oneOf at a schema's root",
    { ...request, tools: [{ ...tool, input_schema: { type: "object", oneOf: [] } }] },
    /does not support oneOf, allOf, or anyOf at the top level/,
  ],
  [
    "a use without a result",
    { ...request, messages: [user, asked, user] },
    /without `tool_result` blocks immediately after: toolu_1/,
  ],
  ["a use at the end", { ...request, messages: [user, asked] }, /without `tool_result` blocks/],
  [
    "a result without a use",
    { ...request, messages: [{ role: "user", content: [result] }] },
    /unexpected `tool_use_id`/,
  ],
  [
    "a result after text",
    { ...request, messages: [user, asked, { role: "user", content: [{ type: "text", text: "x" }, result] }] },
    /must come first/,
  ],
  [
    "thinking without its signature",
    { ...request, messages: [user, { role: "assistant", content: [{ type: "thinking", thinking: "x" }] }, user] },
    /Invalid `signature`/,
  ],
  [
    "five cache marks",
    {
      ...request,
      messages: [
        { role: "user", content: Array(5).fill({ type: "text", text: "x", cache_control: { type: "ephemeral" } }) },
      ],
    },
    /maximum of 4 blocks/,
  ],
];

describe("a request", () => {
  it.each(REFUSED)("is refused with %s", async (_, body, message) => {
    const post = await start([{ text: "hi" }]);
    const response = await post(body);
    const { error } = await response.json();
    expect([response.status, error.type]).toEqual([400, "invalid_request_error"]);
    expect(error.message).toMatch(message);
  });

  it("is let in with tools, results and marks as they should be", async () => {
    const post = await start([{}, { text: "hi" }]);
    const messages = [user, asked, { role: "user", content: [result, { type: "text", text: "go on" }] }];
    expect((await post({ ...request, tools: [tool], messages })).status).toBe(200);
  });
});
