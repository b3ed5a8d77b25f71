import { anthropic } from "./anthropic.ts";
import type { Model, ModelProvider } from "./model.ts";

/** Every provider of models, the preferred one first. A new one is an adapter and a line here. */
export const PROVIDERS: readonly [ModelProvider, ...ModelProvider[]] = [anthropic];

/** How to configure a provider, for a person. */
export const PROVIDER_HELP: string = PROVIDERS.map(
  ({ keyVariable, urlVariable }) => `${keyVariable}; ${urlVariable} is honored`,
).join(", or ");

/**
 * The model of the first provider whose key is set.
 *
 * @param env the environment.
 * @param model the model's name. Default: the provider's own.
 * @returns undefined where no provider's key is set.
 */
export function modelFromEnvironment(
  env: Readonly<Record<string, string | undefined>>,
  model: string | undefined,
): Model | undefined {
  for (const provider of PROVIDERS) {
    const apiKey = env[provider.keyVariable];
    if (apiKey === undefined || apiKey === "") continue;
    const baseUrl = env[provider.urlVariable];
    return provider.createModel({ apiKey, ...(baseUrl && { baseUrl }), ...(model && { model }) });
  }
  return undefined;
}
