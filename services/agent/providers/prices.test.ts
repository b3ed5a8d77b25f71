import { describe, expect, it } from "vitest";
import { pricesOf, withCost } from "./prices.ts";

const usage = (input: number, output = 0, cacheRead = 0, cacheWrite = 0) => ({
  inputTokens: input,
  outputTokens: output,
  cacheReadTokens: cacheRead,
  cacheWriteTokens: cacheWrite,
});

describe("what a turn cost", () => {
  it("is the sum of what each kind of token cost, in millionths of a dollar", () => {
    const prices = pricesOf("anthropic", "claude-opus-5-5");
    expect(withCost(usage(1000, 200, 50_000, 10), prices).costUsdMicros).toBe(4000 + 4000 + 10_000 + 50);
  });

  it("depends on the length of the prompt where the price does", () => {
    const prices = pricesOf("anthropic", "claude-haiku-5-5");
    expect(withCost(usage(1000, 1000, 99_000), prices).costUsdMicros).toBe(100 + 500 + 990);
    expect(withCost(usage(1001, 1000, 99_000), prices).costUsdMicros).toBe(Math.round(500.5 + 2500 + 4950));
  });

  it.each([
    ["another model", "anthropic", "claude-future", usage(1000)],
    ["another provider's model of that name", "ollama", "gpt-5.5", usage(1000)],
    ["a longer prompt than the price is for", "openai", "gpt-5.5", usage(272_001)],
    ["a kind of tokens whose price is not known", "openai", "gpt-5.5", usage(10, 10, 0, 1)],
    ["a turn without a count of tokens", "openai", "gpt-5.5", usage(0)],
  ])("is not made up for %s", (_, provider, model, used) => {
    expect(withCost(used, pricesOf(provider, model))).toEqual(used);
  });
});
