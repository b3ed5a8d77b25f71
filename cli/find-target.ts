import type { CommandContext } from "./command-context.ts";
import { currentLogin } from "./login/current-token.ts";
import { readLogin } from "./login/login-file.ts";
import { dataDir, readProfile } from "./profile.ts";
import { needsLogin, resolveTarget, type Target, type TargetFlags } from "./target.ts";

/**
 * Where to go, from flags, environment, login and profile. The login's provider is asked for a new token only where the
 * login is what lets this command in, and a login file that is damaged matters only where it might.
 */
export async function findTarget(context: Pick<CommandContext, "env" | "now">, flags: TargetFlags): Promise<Target> {
  const { env } = context;
  const folder = dataDir(env);
  const profile = await readProfile(folder);
  const login = await readLogin(folder).catch((error: unknown) => {
    if (needsLogin(flags, env)) throw error;
    return undefined;
  });
  const target = resolveTarget(flags, env, profile, login);
  if (login === undefined || target.token !== login.idToken) return target;
  // All of it again: by now the file may hold the login of another registry.
  return resolveTarget(flags, env, profile, await currentLogin(context));
}
