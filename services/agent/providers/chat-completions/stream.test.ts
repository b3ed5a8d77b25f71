import type { ChatCompletionChunk } from "openai/resources/chat/completions";
import { describe, expect, it } from "vitest";
import { ModelError } from "../model.ts";
import { readChunks } from "./stream.ts";

const read = (...chunks: unknown[]) =>
  readChunks(
    (async function* () {
      yield* chunks as ChatCompletionChunk[];
    })(),
    () => undefined,
  );
const delta = (value: unknown, finish_reason: string | null = null) => ({
  id: "c",
  choices: [{ delta: value, finish_reason }],
});
const use = (value: unknown) => delta({ tool_calls: [value] });
const STOP = delta({}, "stop");

const broken = async (...chunks: unknown[]) => {
  const error = await read(...chunks).catch((thrown: unknown) => thrown);
  return error instanceof ModelError ? [error.kind, error.message] : error;
};

describe("the chunks of a turn", () => {
  it("may lack nearly everything", async () => {
    const odd = [
      {},
      { choices: null },
      { choices: [] },
      { choices: [null] },
      delta(null),
      delta({ content: null, tool_calls: null }),
    ];
    expect(await read(...odd, use(null), delta({ content: "x" }), STOP)).toEqual({
      id: "c",
      pieces: ["x"],
      uses: [],
      usage: undefined,
      stop: { kind: "end" },
    });
  });

  it("may bring a use without an index, or its id after its name", async () => {
    const chunks = [
      use({ function: { name: "a", arguments: "{" } }),
      use({ id: "1", function: { name: "a", arguments: "}" } }),
      use({ id: "2", function: { name: "b", arguments: "{}" } }),
    ];
    const { uses } = await read(...chunks, STOP);
    expect(uses.map(({ id, name, pieces }) => [id, name, pieces.join("")])).toEqual([
      ["1", "a", "{}"],
      ["2", "b", "{}"],
    ]);
  });

  it("may bring the pieces of two uses in turns", async () => {
    const piece = (index: number, text: string) => use({ index, function: { arguments: text } });
    const { uses } = await read(
      use({ index: 0, id: "1", function: { name: "a", arguments: "" } }),
      use({ index: 1, id: "2", function: { name: "b" } }),
      piece(0, "[0"),
      piece(1, "[1"),
      piece(0, "]"),
      piece(1, "]"),
      STOP,
    );
    expect(uses.map(({ pieces }) => pieces.join(""))).toEqual(["[0]", "[1]"]);
  });

  it("count tokens as far as the counts are numbers", async () => {
    const usage = { prompt_tokens: 10, completion_tokens: "many", prompt_tokens_details: { cached_tokens: 4 } };
    const expected = { inputTokens: 6, outputTokens: 0, cacheReadTokens: 4, cacheWriteTokens: 0 };
    expect((await read(STOP, { choices: [], usage })).usage).toEqual(expected);
  });
});

describe("chunks that make no turn", () => {
  it("end without a reason", async () => {
    expect(await broken(delta({ content: "half" }))).toEqual(["broken", "the model's answer was cut off"]);
    expect(await broken()).toEqual(["broken", "the model's answer was cut off"]);
  });

  it.each(["error", "abort", "something_new"])("end with %s", async (reason) => {
    expect(await broken(delta({ content: "half" }, reason))).toEqual([
      "broken",
      `the model's answer ended with "${reason}"`,
    ]);
  });

  it("go on after the end", async () => {
    const late = use({ index: 0, id: "1", function: { name: "a", arguments: "{}" } });
    expect(await broken(STOP, late)).toEqual(["broken", "the model's answer goes on after its end"]);
  });

  it("bring a name in pieces: half a name may be another tool's", async () => {
    const named = (name: string) => use({ index: 0, id: "1", function: { name } });
    expect(await broken(named("fs_read"), named("_link"), STOP)).toEqual([
      "broken",
      "the model's answer renames a tool use",
    ]);
  });
});
