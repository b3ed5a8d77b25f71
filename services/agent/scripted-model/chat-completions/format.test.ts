import { afterEach, describe, expect, it } from "vitest";
import type { ScriptedModel } from "../server.ts";
import type { ChatRequest } from "./check-request.ts";
import { DIALECTS, LLAMACPP_DIALECT, OLLAMA_DIALECT, OPENAI_DIALECT } from "./dialects.ts";
import { startScriptedChat } from "./format.ts";

let server: ScriptedModel<ChatRequest> | undefined;
afterEach(() => server?.close());

const HEADERS = { "content-type": "application/json", authorization: "Bearer key" };
const user = { role: "user", content: "hello" };
const request = { model: "any", stream: true, messages: [user] };
const called = (json = "{}", id = "call_1") => ({
  role: "assistant",
  content: null,
  tool_calls: [{ id, type: "function", function: { name: "exec", arguments: json } }],
});
const result = { role: "tool", tool_call_id: "call_1", content: "done" };
const tool = { type: "function", function: { name: "exec", parameters: { type: "object" } } };
const exec = { name: "exec", input: { argv: ["df", "-k"] } };

async function start(
  dialect = OPENAI_DIALECT,
  turns = [{ text: "hi" }] as Parameters<typeof startScriptedChat>[1]["turns"],
) {
  const started = await startScriptedChat(dialect, { turns });
  server = started;
  return (body: unknown, headers: Record<string, string> = HEADERS) =>
    fetch(`${started.url}/v1/chat/completions`, { method: "POST", headers, body: JSON.stringify(body) });
}

/** The chunks of a streamed answer, without comments and the mark of the end. */
const chunks = (text: string) => [...text.matchAll(/^data: (\{.*\})$/gmu)].map(([, json]) => JSON.parse(json ?? ""));

describe.each(DIALECTS)("a turn of $kind.name's", (dialect) => {
  it("ends with a reason, the usage where it is asked for, and the mark of the end", async () => {
    const post = await start(dialect, [{ text: "I will look.", toolUses: [exec, exec] }]);
    const text = await (await post({ ...request, stream_options: { include_usage: true } })).text();
    expect(text.endsWith("data: [DONE]\n\n")).toBe(true);
    const all = chunks(text);
    expect(all.at(-1)).toMatchObject({ choices: [], usage: { prompt_tokens: 100 } });
    expect(all.at(-2).choices).toMatchObject([{ finish_reason: dialect.finishWithUses }]);
    const without = chunks(await (await post(request)).text());
    expect(without.at(-1).choices).toMatchObject([{ finish_reason: dialect.finishWithUses }]);
  });
});

describe("what differs between servers", () => {
  const uses = async (dialect: typeof OPENAI_DIALECT) => {
    const post = await start(dialect, [{ toolUses: [exec, exec] }]);
    const text = await (await post(request)).text();
    await server?.close();
    return { text, deltas: chunks(text).flatMap(({ choices }) => choices[0]?.delta.tool_calls ?? []) };
  };

  it("is whether a use comes whole, and its index", async () => {
    const whole = (await uses(OLLAMA_DIALECT)).deltas;
    expect(whole.map(({ index, function: { arguments: json } }) => [index, json])).toEqual([
      [0, '{"argv":["df","-k"]}'],
      [0, '{"argv":["df","-k"]}'],
    ]);
    const { deltas } = await uses(OPENAI_DIALECT);
    expect(deltas.length).toBeGreaterThan(4);
    expect(new Set(deltas.map(({ index }) => index))).toEqual(new Set([0, 1]));
    expect(deltas.filter(({ id }) => id !== undefined)).toHaveLength(2);
  });

  it("is a comment that keeps the connection alive", async () => {
    expect((await uses(LLAMACPP_DIALECT)).text).toContain("\n:\n\n");
    expect((await uses(OPENAI_DIALECT)).text).not.toContain("\n:\n\n");
  });

  it("is whether a key is needed", async () => {
    const headers = { "content-type": "application/json" };
    expect((await (await start(OPENAI_DIALECT))(request, headers)).status).toBe(401);
    await server?.close();
    expect((await (await start(OLLAMA_DIALECT))(request, headers)).status).toBe(200);
  });
});

const REFUSED: [what: string, body: unknown, message: RegExp][] = [
  ["no model", { ...request, model: "" }, /model parameter/],
  ["no stream", { ...request, stream: false }, /only streams/],
  ["another server's limit", { ...request, max_tokens: 5 }, /Unrecognized request argument supplied: max_tokens/],
  ["an empty list of tools", { ...request, tools: [] }, /empty array/],
  [
    "a tool's name with a dot",
    { ...request, tools: [{ ...tool, function: { ...tool.function, name: "a.b" } }] },
    /name/,
  ],
  [
    "a tool's name of 65 characters",
    { ...request, tools: [{ ...tool, function: { ...tool.function, name: "a".repeat(65) } }] },
    /name/,
  ],
  ["a tool twice", { ...request, tools: [tool, tool] }, /used twice/],
  [
    "a schema without type",
    { ...request, tools: [{ ...tool, function: { name: "a", parameters: {} } }] },
    /type 'object'/,
  ],
  [
    "an open schema in strict mode",
    { ...request, tools: [{ ...tool, function: { ...tool.function, strict: true } }] },
    /strict mode/,
  ],
  ["no messages", { ...request, messages: [] }, /empty array/],
  [
    "an assistant who is silent",
    { ...request, messages: [user, { role: "assistant", content: "" }, user] },
    /expected a string/,
  ],
  [
    "a call without an answer",
    { ...request, messages: [user, called(), user] },
    /did not have response messages: call_1/,
  ],
  ["a call at the end", { ...request, messages: [user, called()] }, /did not have response messages: call_1/],
  ["an answer without a call", { ...request, messages: [user, result] }, /must be a response/],
  ["an id that came earlier", { ...request, messages: [user, called(), result, called(), result] }, /used twice/],
  ["an id that is too long", { ...request, messages: [user, called("{}", "x".repeat(41))] }, /tool_calls\[0\]\.id/],
  [
    "arguments that are cut off",
    { ...request, messages: [user, called('{"a":'), result] },
    /invalid tool call arguments/,
  ],
  ["arguments that are a list", { ...request, messages: [user, called("[]"), result] }, /invalid tool call arguments/],
];

describe("a request", () => {
  it.each(REFUSED)("is refused with %s", async (_, body, message) => {
    const post = await start();
    const response = await post(body);
    const { error } = await response.json();
    expect([response.status, error.type]).toEqual([400, "invalid_request_error"]);
    expect(error.message).toMatch(message);
  });

  it("is let in with tools and results as they should be, and the script sees them", async () => {
    const post = await start(OPENAI_DIALECT, [
      {},
      { text: ({ results }) => `${results[0]?.name} said ${results[0]?.content}, ${results[0]?.isError}` },
    ]);
    const text = await (await post({ ...request, tools: [tool], messages: [user, called(), result] })).text();
    const said = chunks(text).map(({ choices }) => choices[0]?.delta.content ?? "");
    expect(said.join("")).toBe("exec said done, false");
  });
});
