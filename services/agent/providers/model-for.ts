import { invalidField } from "../../../lib/fault/invalid-input.ts";
import type { Model } from "./model.ts";
import { pricesOf } from "./prices.ts";
import { type ModelProvider, PROVIDERS, type ProviderSettings } from "./providers.ts";

/** The variables to read keys and addresses from, such as process.env. */
type Environment = Readonly<Record<string, string | undefined>>;

/** A model that is configured, and not loaded yet. */
export interface ModelChoice {
  /** The complete name, such as "ollama/qwen3". */
  name: string;
  provider: ModelProvider;
  settings: ProviderSettings;
}

/** How to name and configure a model of each provider, for a person: a line each. */
export const PROVIDER_LINES: readonly string[] = PROVIDERS.map(({ name, keyVariable, needsKey, urlVariable, url }) => {
  const key = needsKey ? `needs ${keyVariable}` : `${keyVariable} where its server takes a key`;
  return `${name}/NAME: ${key}; at ${url} unless ${urlVariable} is set`;
});

const NAMES = PROVIDERS.map(({ name }) => `${name}/NAME`).join(", ");

/** Whether a provider that needs a key has one, so that a model need not be named. */
export function hasKey(env: Environment): boolean {
  return PROVIDERS.some((provider) => provider.needsKey && env[provider.keyVariable]);
}

/**
 * The model that a name stands for: "provider/name"; a bare name or none is of the first provider whose key is set.
 * Throws INVALID_INPUT for the field "model", saying what to set, where the provider is unknown or not configured.
 */
export function chooseModel(name: string | undefined, env: Environment): ModelChoice {
  const [provider, model] = name?.includes("/") ? named(name) : firstWithKey(name, env);
  const { keyVariable, needsKey } = provider;
  const apiKey = env[keyVariable];
  if (needsKey && !apiKey) throw refused("key_required", `${keyVariable} is not set`);
  const baseUrl = urlOf(provider, env);
  // Another address is another seller, with prices of its own.
  const prices = baseUrl === provider.url ? pricesOf(provider.name, model) : [];
  const settings = { apiKey: apiKey || "none", baseUrl, model, prices };
  return { name: `${provider.name}/${model}`, provider, settings };
}

/** The model of `chooseModel`, with its provider's SDK loaded. */
export async function modelFor(name: string | undefined, env: Environment): Promise<Model> {
  const { provider, settings } = chooseModel(name, env);
  return provider.createModel(settings);
}

function named(name: string): [ModelProvider, string] {
  const at = name.indexOf("/");
  const [prefix, model] = [name.slice(0, at), name.slice(at + 1)];
  const provider = PROVIDERS.find((one) => one.name === prefix);
  if (provider === undefined) {
    throw refused("known_provider", `there is no provider ${JSON.stringify(prefix)}: a model is one of ${NAMES}`);
  }
  if (model === "") throw refused("required", `${JSON.stringify(name)} names no model`);
  return [provider, model];
}

function firstWithKey(model: string | undefined, env: Environment): [ModelProvider, string] {
  const provider = PROVIDERS.find((one) => one.needsKey && env[one.keyVariable]) ?? PROVIDERS[0];
  if (!env[provider.keyVariable]) {
    throw refused("key_required", `${provider.keyVariable} is not set, and no model is named as one of ${NAMES}`);
  }
  const name = model || provider.defaultModel;
  if (name === undefined) throw refused("required", `${provider.name} has no default model`);
  return [provider, name];
}

function urlOf({ urlVariable, url, toUrl = (text) => text }: ModelProvider, env: Environment): string {
  const text = env[urlVariable];
  if (!text) return url;
  const given = toUrl(text);
  if (given !== undefined && isPlainAddress(given)) return given;
  throw refused("url", `${urlVariable} must be an http or https address without a user and a password`);
}

/** A password in an address would stand in every error of a connection to it. */
function isPlainAddress(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, username, password } = new URL(text);
  return /^https?:$/u.test(protocol) && username === "" && password === "";
}

function refused(rule: string, message: string): Error {
  return invalidField("model", rule, message, { text: message });
}
