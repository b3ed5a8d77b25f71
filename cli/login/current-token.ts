import { dataDir } from "../profile.ts";
import type { World } from "../world.ts";
import { type Login, readLogin, writeLogin } from "./login-file.ts";
import type { LoginTokens, Provider } from "./provider.ts";

/** A token this close to its end is changed for a new one first, in milliseconds. */
const EARLY_MS = 30_000;

/**
 * The login of this machine's user, with a token that is good for a while yet: one that is about to expire is refreshed
 * and kept. One that cannot be refreshed is given as it is; the service then says that it has expired.
 */
export async function currentLogin(
  { env, now }: Pick<World, "env" | "now">,
  ask: (provider: Provider, refreshToken: string) => Promise<LoginTokens> = refreshAtProvider,
): Promise<Login | undefined> {
  const login = await readLogin(dataDir(env));
  if (login?.refreshToken === undefined || now() < login.expireMs - EARLY_MS) return login;
  const tokens = await ask(login.provider, login.refreshToken).catch(() => undefined);
  if (tokens === undefined) return login;
  const renewed = { ...login, ...tokens };
  await writeLogin(dataDir(env), renewed);
  return renewed;
}

/** The provider's client is loaded only for this: most commands never need it. */
async function refreshAtProvider(provider: Provider, refreshToken: string): Promise<LoginTokens> {
  const { refresh } = await import("./provider.ts");
  return refresh(provider, refreshToken);
}
