import type { Usage } from "./model.ts";

/** What a million tokens cost, in US dollars. */
export interface Price {
  input: number;
  output: number;
  cacheRead: number;
  /** Absent: not known. */
  cacheWrite?: number;
  /** The longest prompt that this is the price for, in tokens, cached ones included. Default: any. */
  maxPrompt?: number;
}

/** A provider's list of prices, as it stood on a day. */
interface PriceList {
  provider: string;
  source: string;
  /** The day on which these prices stood in the source. */
  asOf: string;
  /** By model; several for one model in the order of their longest prompts. */
  prices: readonly (readonly [model: string, price: Price])[];
}

/** OpenAI's prices for prompts that are not long; for others there is another list. */
const SHORT = 272_000;

/** Lists of prices, newest first. A model that is on no list has no price: none is made up. Cache writes are those of 5 minutes. */
const LISTS: readonly PriceList[] = [
  {
    provider: "anthropic",
    source: "https://platform.claude.com/docs/en/about-claude/pricing",
    asOf: "2026-10-24",
    prices: [
      ["claude-fable-5-1", { input: 10, output: 50, cacheRead: 0.25, cacheWrite: 12.5 }],
      ["claude-opus-5-5", { input: 4, output: 20, cacheRead: 0.2, cacheWrite: 5 }],
      ["claude-opus-5", { input: 5, output: 25, cacheRead: 0.5, cacheWrite: 6.25 }],
      ["claude-sonnet-5-5", { input: 2, output: 10, cacheRead: 0.1, cacheWrite: 2.5 }],
      ["claude-haiku-5-5", { input: 0.1, output: 0.5, cacheRead: 0.01, cacheWrite: 0.125, maxPrompt: 100_000 }],
      ["claude-haiku-5-5", { input: 0.5, output: 2.5, cacheRead: 0.05, cacheWrite: 0.625 }],
    ],
  },
  {
    provider: "openai",
    source: "https://developers.openai.com/api/docs/pricing",
    asOf: "2026-10-26",
    prices: [
      ["gpt-6.1-sol", { input: 2, output: 10, cacheRead: 0.1, cacheWrite: 2.5, maxPrompt: SHORT }],
      ["gpt-6.1-terra", { input: 1, output: 5, cacheRead: 0.05, cacheWrite: 1.25, maxPrompt: SHORT }],
      ["gpt-6-sol", { input: 2, output: 10, cacheRead: 0.2, cacheWrite: 2.5, maxPrompt: SHORT }],
      ["gpt-6-luna", { input: 0.1, output: 0.5, cacheRead: 0.01, cacheWrite: 0.125, maxPrompt: SHORT }],
    ],
  },
  {
    provider: "openai",
    source: "https://developers.openai.com/api/docs/pricing",
    asOf: "2026-06-30",
    prices: [["gpt-5.5", { input: 5, output: 30, cacheRead: 0.5, maxPrompt: SHORT }]],
  },
];

/** The prices of a provider's model, by the length of the prompt; empty where none is known. */
export function pricesOf(provider: string, model: string): readonly Price[] {
  const list = LISTS.find((one) => one.provider === provider && one.prices.some(([name]) => name === model));
  return list?.prices.filter(([name]) => name === model).map(([, price]) => price) ?? [];
}

/** What a turn used, with its cost where that is known: a turn that reports no tokens has none. */
export function withCost(usage: Usage, prices: readonly Price[]): Usage {
  const { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens } = usage;
  const prompt = inputTokens + cacheReadTokens + cacheWriteTokens;
  const price = prices.find(({ maxPrompt = Number.POSITIVE_INFINITY }) => prompt <= maxPrompt);
  if (price === undefined || prompt === 0) return usage;
  if (price.cacheWrite === undefined && cacheWriteTokens > 0) return usage;
  // Dollars for a million tokens are millionths of a dollar for one.
  const micros =
    inputTokens * price.input +
    outputTokens * price.output +
    cacheReadTokens * price.cacheRead +
    cacheWriteTokens * (price.cacheWrite ?? 0);
  return { ...usage, costUsdMicros: Math.round(micros) };
}
