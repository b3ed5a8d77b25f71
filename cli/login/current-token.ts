import { join } from "node:path";
import type { CommandContext } from "../command-context.ts";
import { dataDir } from "../profile.ts";
import { withLock } from "./lock.ts";
import { type Login, readLogin, writeLogin } from "./login-file.ts";
import type { LoginTokens, Provider } from "./provider.ts";

/** A token this close to its end is changed for a new one first, in milliseconds. */
const EARLY_MS = 30_000;

/** How long the provider may take, in milliseconds: a command must not hang because the provider does. */
const PROVIDER_MS = 5_000;

/** How a provider is asked. */
export interface RefreshOptions {
  /** Gets the next tokens, or rejects within so many milliseconds. Default: asks the provider. */
  ask?(provider: Provider, refreshToken: string, withinMs: number): Promise<LoginTokens>;
  /** How long the provider may take, in milliseconds. Default 5000. */
  withinMs?: number;
}

/**
 * The login of this machine's user, with a token that is good for a while yet: one that is about to expire is refreshed
 * and kept. One that cannot be refreshed in time is given as it is; the service then says that it has expired. Only one
 * process refreshes at a time, because a refresh token that is used twice ends the whole login at many providers.
 */
export async function currentLogin(
  { env, now }: Pick<CommandContext, "env" | "now">,
  options: RefreshOptions = {},
): Promise<Login | undefined> {
  const { ask = refreshAtProvider, withinMs = PROVIDER_MS } = options;
  const folder = dataDir(env);
  const isFresh = (login: Login | undefined) => login?.refreshToken === undefined || now() < login.expireMs - EARLY_MS;
  const renew = async (): Promise<Login | undefined> => {
    // The holder of the lock before has renewed it.
    const login = await readLogin(folder);
    if (login?.refreshToken === undefined || isFresh(login)) return login;
    const tokens = await ask(login.provider, login.refreshToken, withinMs);
    const renewed = { ...login, ...tokens };
    await writeLogin(folder, renewed);
    return renewed;
  };
  const login = await readLogin(folder);
  if (isFresh(login)) return login;
  return withLock(join(folder, "login.lock"), {}, renew).catch(() => login);
}

/** The provider's client is loaded only for this: most commands never need it. */
async function refreshAtProvider(provider: Provider, refreshToken: string, withinMs: number): Promise<LoginTokens> {
  const { refresh } = await import("./provider.ts");
  return refresh(provider, refreshToken, AbortSignal.timeout(withinMs));
}
