import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runInline } from "../loop/run-inline.ts";
import { newRunInput } from "../run-input/run-input.ts";
import { DIALECTS } from "../scripted-model/chat-completions/dialects.ts";
import { startScriptedChat } from "../scripted-model/chat-completions/format.ts";
import type { Cut, ScriptedTurn } from "../scripted-model/script.ts";
import { type ScriptedModel, type ScriptedModelOptions, startScriptedModel } from "../scripted-model/server.ts";
import { devicelessToolset } from "../testdata/deviceless-toolset.ts";
import type { ToolCaller } from "../toolbox/followed-toolbox.ts";
import { createAnthropicModel } from "./anthropic/adapter.ts";
import { createChatModel } from "./chat-completions/adapter.ts";
import { type Model, ModelError } from "./model.ts";

/** Text, a use with a long input, and one with an empty input, which is whole as soon as it has begun. */
const TURN = {
  text: "I clean up.",
  toolUses: [
    { name: "exec", input: { argv: ["rm", "-rf", "/tmp/cache/ä"] }, id: "call_1" },
    { name: "exec", input: {}, id: "call_2" },
  ],
} satisfies ScriptedTurn;

/** A format: how its server starts, its adapter, its path, and what stands where a provider says why a turn ended. */
interface Format {
  name: string;
  start(options: ScriptedModelOptions): Promise<ScriptedModel<unknown>>;
  model(url: string): Model;
  path: string;
  endReason: string;
}

const SETTINGS = { apiKey: "key", model: "any", maxRetries: 0 };
const FORMATS: readonly Format[] = [
  {
    name: "anthropic",
    start: startScriptedModel,
    model: (baseUrl) => createAnthropicModel({ ...SETTINGS, baseUrl }),
    path: "/v1/messages",
    endReason: '{"type":"message_stop"',
  },
  ...DIALECTS.map((dialect) => ({
    name: dialect.kind.name,
    start: (options: ScriptedModelOptions) => startScriptedChat(dialect, options),
    model: (url: string) => createChatModel({ ...SETTINGS, kind: dialect.kind, baseUrl: `${url}/v1` }),
    path: "/v1/chat/completions",
    endReason: '"finish_reason":"',
  })),
];

const HEADERS = { authorization: "Bearer key", "x-api-key": "key", "anthropic-version": "2026-10-21" };

/** The body that the server streams for the first request that it got. */
async function bodyOf({ url, requests }: ScriptedModel<unknown>, path: string): Promise<Buffer> {
  const response = await fetch(`${url}${path}`, {
    method: "POST",
    headers: HEADERS,
    body: JSON.stringify(requests[0]),
  });
  return Buffer.from(await response.arrayBuffer());
}

/** Before the first byte, at the end of each event, a byte to either side, and in its middle. */
function cutPlaces(streamed: Buffer): number[] {
  const ends: number[] = [];
  for (let at = streamed.indexOf("\n\n"); at !== -1; at = streamed.indexOf("\n\n", at + 2)) ends.push(at + 2);
  const places = ends.flatMap((end, index) => [
    Math.floor(((ends[index - 1] ?? 0) + end) / 2),
    end - 1,
    end,
    Math.min(end + 1, streamed.length),
  ]);
  return [...new Set([0, ...places])];
}

describe.each(FORMATS)("a stream of $name's that is cut", ({ start, model, path, endReason }) => {
  let server: ScriptedModel<unknown>;
  let cut: Cut | undefined;
  let streamed: Buffer = Buffer.alloc(0);
  beforeAll(async () => {
    server = await start({ turns: [{ ...TURN, cut: () => cut }, { text: "Done." }] });
    await play(undefined);
    streamed = await bodyOf(server, path);
  });
  afterAll(() => server.close());

  /** Runs an agent over the stream, and gives what it called and how it ended. */
  async function play(at: Cut | undefined, url = server.url) {
    cut = at;
    const called: unknown[] = [];
    const caller: ToolCaller = {
      call: async ({ id, input }) => {
        called.push([id, input]);
        return { content: "ok", isError: false };
      },
    };
    const input = newRunInput({ runId: "run-1", toolset: devicelessToolset(["exec"]), prompt: "Go." });
    const { kind, error, calls, text } = await runInline(input, { model: model(url), caller });
    return { kind, error, called, calls: calls.length, text };
  }

  const both = TURN.toolUses.map(({ id, input }) => [id, input]);

  it.each([true, false])("at any place, with the body ended cleanly: %s, runs nothing of it", async (clean) => {
    const places = cutPlaces(streamed);
    expect(places.length).toBeGreaterThan(20);
    const whole = [];
    for (const bytes of places) {
      const { kind, error, called, calls } = await play({ bytes, clean });
      if (kind === "done") {
        expect(called).toEqual(both);
        whole.push(bytes);
      } else {
        expect([kind, called, calls]).toEqual(["error", [], 0]);
        expect(error).toBeInstanceOf(ModelError);
        expect(error).toMatchObject({ kind: "broken" });
      }
    }
    // A turn counts once its provider has said why it ended, which is at the end of the stream.
    const end = streamed.lastIndexOf(endReason);
    expect(end).toBeGreaterThan(0);
    expect(whole.filter((bytes) => bytes <= end)).toEqual([]);
    if (clean) expect(whole).toContain(streamed.length);
  });

  it("nowhere runs everything once", async () => {
    const { kind, called } = await play(undefined);
    expect([kind, called]).toEqual(["done", both]);
  });

  it("nowhere, and arrives byte by byte, is the same", async () => {
    const slow = await start({
      turns: [
        { ...TURN, trickles: true },
        { text: "Done: ä😀.", trickles: true },
      ],
    });
    try {
      const { kind, called, text } = await play(undefined, slow.url);
      expect([kind, called, text]).toEqual(["done", both, "Done: ä😀."]);
    } finally {
      await slow.close();
    }
  });
});
