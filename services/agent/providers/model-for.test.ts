import { ConnectError } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { faultDetail } from "../../../lib/fault/fault.ts";
import { chooseModel, hasKey, modelFor } from "./model-for.ts";

type Env = Record<string, string>;

const chosen = (name: string | undefined, env: Env) => {
  const { name: complete, settings } = chooseModel(name, env);
  return [complete, settings.model, settings.baseUrl, settings.apiKey];
};

describe("the model that a name stands for", () => {
  const CHOICES: [string | undefined, Env, ...string[]][] = [
    [
      "anthropic/claude-x",
      { ANTHROPIC_API_KEY: "a" },
      "anthropic/claude-x",
      "claude-x",
      "https://api.anthropic.com",
      "a",
    ],
    ["openai/gpt-x", { OPENAI_API_KEY: "o" }, "openai/gpt-x", "gpt-x", "https://api.openai.com/v1", "o"],
    ["ollama/qwen3:8b", {}, "ollama/qwen3:8b", "qwen3:8b", "http://127.0.0.1:11434/v1", "none"],
    ["vllm/Qwen/Qwen3-8B", {}, "vllm/Qwen/Qwen3-8B", "Qwen/Qwen3-8B", "http://127.0.0.1:8000/v1", "none"],
    ["llamacpp/any", { LLAMA_API_KEY: "l" }, "llamacpp/any", "any", "http://127.0.0.1:8080/v1", "l"],
    ["vllm/m", { VLLM_BASE_URL: "http://gpu:9000" }, "vllm/m", "m", "http://gpu:9000/v1", "none"],
    ["vllm/m", { VLLM_BASE_URL: "https://gpu/llm/v1" }, "vllm/m", "m", "https://gpu/llm/v1", "none"],
    ["openai/m", { OPENAI_API_KEY: "o", OPENAI_BASE_URL: "https://proxy/x" }, "openai/m", "m", "https://proxy/x", "o"],
    // A bare name, and none: of the first provider whose key is set.
    [
      "claude-x",
      { ANTHROPIC_API_KEY: "a", OPENAI_API_KEY: "o" },
      "anthropic/claude-x",
      "claude-x",
      "https://api.anthropic.com",
      "a",
    ],
    ["gpt-x", { OPENAI_API_KEY: "o" }, "openai/gpt-x", "gpt-x", "https://api.openai.com/v1", "o"],
    [
      undefined,
      { ANTHROPIC_API_KEY: "a" },
      "anthropic/claude-opus-5-5",
      "claude-opus-5-5",
      "https://api.anthropic.com",
      "a",
    ],
  ];
  it.each(CHOICES)("%s with %j is %s", (name, env, ...expected) => {
    expect(chosen(name, env)).toEqual(expected);
  });

  it.each([
    ["gpu", "http://gpu:11434/v1"],
    ["gpu:80", "http://gpu/v1"],
    [":9999", "http://127.0.0.1:9999/v1"],
    ["0.0.0.0", "http://127.0.0.1:11434/v1"],
    ["0.0.0.0:9999", "http://127.0.0.1:9999/v1"],
    ["[::]:9999", "http://[::1]:9999/v1"],
    ["http://gpu", "http://gpu/v1"],
    ["https://gpu/", "https://gpu/v1"],
    ["https://gpu/ollama/v1", "https://gpu/ollama/v1"],
  ])("is where OLLAMA_HOST=%s says", (host, url) => {
    expect(chooseModel("ollama/m", { OLLAMA_HOST: host }).settings.baseUrl).toBe(url);
  });
});

describe("the price of a model", () => {
  const prices = (name: string, env: Env) => chooseModel(name, env).settings.prices.length;

  it("is the provider's, at its own address only", () => {
    const key = { ANTHROPIC_API_KEY: "a" };
    expect(prices("anthropic/claude-opus-5-5", key)).toBe(1);
    expect(prices("anthropic/claude-opus-5-5", { ...key, ANTHROPIC_BASE_URL: "https://reseller" })).toBe(0);
    expect(prices("anthropic/claude-unknown", key)).toBe(0);
    expect(prices("ollama/gpt-5.5", {})).toBe(0);
  });
});

describe("a model that cannot be used", () => {
  const PROBLEMS: [string | undefined, Env, RegExp][] = [
    [undefined, {}, /^ANTHROPIC_API_KEY is not set.*openai\/NAME, ollama\/NAME/],
    ["openai/gpt-x", { ANTHROPIC_API_KEY: "a" }, /^OPENAI_API_KEY is not set$/],
    ["openai/gpt-x", { OPENAI_API_KEY: "" }, /^OPENAI_API_KEY is not set$/],
    ["Qwen/Qwen3", { ANTHROPIC_API_KEY: "a" }, /^there is no provider "Qwen".*vllm\/NAME/],
    ["ollama/", {}, /names no model/],
    ["ollama/m", { OLLAMA_HOST: "not a host" }, /^OLLAMA_HOST must be/],
    ["vllm/m", { VLLM_BASE_URL: "gpu:8000" }, /^VLLM_BASE_URL must be/],
    ["openai/m", { OPENAI_API_KEY: "o", OPENAI_BASE_URL: "https://me:secret@proxy" }, /^OPENAI_BASE_URL must be[^:]*$/],
  ];
  it.each(PROBLEMS)("%s with %j says what to set", async (name, env, message) => {
    const error = await modelFor(name, env).catch((thrown: unknown) => thrown);
    expect(ConnectError.from(error).rawMessage).toMatch(message);
    expect(faultDetail(error)?.metadata).toMatchObject({ field: "model" });
  });

  it("is not chosen by a key that is of no use to it", () => {
    expect([hasKey({ OLLAMA_API_KEY: "x" }), hasKey({ OPENAI_API_KEY: "" }), hasKey({ OPENAI_API_KEY: "o" })]).toEqual([
      false,
      false,
      true,
    ]);
  });
});
