import { afterEach, expect, it } from "vitest";
import type { ScriptedTurn } from "../../scripted-model/script.ts";
import { type ScriptedModel, startScriptedModel } from "../../scripted-model/server.ts";
import type { ToolDefinition } from "../../toolset/toolset.ts";
import type { Message, Turn } from "../model.ts";
import { createAnthropicModel } from "./adapter.ts";
import { SEARCH_ABOVE } from "./tools.ts";

let server: ScriptedModel | undefined;
afterEach(() => server?.close());

const tool = (name: string, capability = name): ToolDefinition => ({
  name,
  description: `Does ${name}.`,
  capability,
  requiresApproval: false,
  inputSchema: { type: "object" },
});

/** So many tools: two that are always given, one that needs no device, and others. */
const fleet = (count: number, ...more: string[]): ToolDefinition[] => {
  const names = Array.from({ length: count - 3 - more.length }, (_, index) => `camera${index}:snapshot`);
  return [...[...names, ...more, "exec", "fs.read"].map((name) => tool(name)), tool("ask_user", "")];
};

async function start(turns: readonly ScriptedTurn[], tools: readonly ToolDefinition[]) {
  const started = await startScriptedModel({ turns });
  server = started;
  const model = createAnthropicModel({ apiKey: "key", model: "any", baseUrl: started.url, maxRetries: 0 });
  const turn = (messages: readonly Message[] = []) =>
    model.turn({
      system: "",
      messages: [{ role: "user", text: "hello" }, ...messages],
      tools,
      signal: new AbortController().signal,
      onText: () => undefined,
    });
  const sent = () => JSON.parse(JSON.stringify(started.requests[0]?.tools ?? [])) as Record<string, unknown>[];
  return { turn, sent, requests: started.requests };
}

const MARK = { type: "ephemeral" };

it("gives the model every tool as long as there are not too many", async () => {
  const { turn, sent } = await start([{ text: "hi" }], fleet(SEARCH_ABOVE));
  await turn();
  expect(sent()).toHaveLength(SEARCH_ABOVE);
  expect(sent().filter((one) => one.defer_loading !== undefined || one.type !== undefined)).toEqual([]);
  expect(sent().at(-1)?.cache_control).toEqual(MARK);
});

it("lets the model search where there are many: the usual ones are given, the mark is behind them", async () => {
  const { turn, sent } = await start([{ text: "hi" }], fleet(300));
  await turn();
  expect(sent()).toHaveLength(301);
  expect(sent().slice(0, 4)).toMatchObject([
    { name: "exec" },
    { name: "fs_read" },
    { name: "ask_user" },
    { type: "tool_search_tool_bm25", name: "tool_search_tool_bm25", cache_control: MARK },
  ]);
  expect(
    sent()
      .slice(4)
      .every((one) => one.defer_loading === true && one.cache_control === undefined),
  ).toBe(true);
});

const answered = ({ text, toolUses, native }: Turn): Message[] => [
  { role: "assistant", text, toolUses, native },
  { role: "tool_results", results: toolUses.map(({ id }) => ({ toolUseId: id, content: "ok", isError: false })) },
];

it("uses what it finds under its own name, and gives the search back as it came", async () => {
  const found = {
    text: "Let me look.",
    search: "camera7 snapshot",
    toolUses: [{ name: "camera7__snapshot", input: { a: 1 } }],
  };
  const { turn, requests } = await start([found, { text: "Done." }], fleet(300));
  const first = await turn();
  expect(first.toolUses).toMatchObject([{ name: "camera7:snapshot", input: { kind: "json", value: { a: 1 } } }]);
  expect((await turn(JSON.parse(JSON.stringify(answered(first))))).text).toBe("Done.");
  const given = requests[1]?.messages[1]?.content;
  expect(given).toMatchObject([
    { type: "text" },
    { type: "server_tool_use", name: "tool_search_tool_bm25", input: { query: "camera7 snapshot" } },
    {
      type: "tool_search_tool_result",
      content: {
        tool_references: expect.arrayContaining([{ type: "tool_reference", tool_name: "camera7__snapshot" }]),
      },
    },
    { type: "tool_use", name: "camera7__snapshot" },
  ]);
});

it("does not search where a tool has the search's name", async () => {
  const { turn, sent } = await start([{ text: "hi" }], fleet(100, "tool_search_tool_bm25"));
  await turn();
  expect(sent().filter((one) => one.defer_loading !== undefined)).toEqual([]);
});
