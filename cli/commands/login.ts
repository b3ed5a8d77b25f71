import type { Command } from "commander";
import type { CommandContext } from "../command-context.ts";
import { UsageError } from "../errors/usage-error.ts";
import { withJson } from "../list-options.ts";
import { removeLogin, writeLogin } from "../login/login-file.ts";
import { logIn } from "../login/provider.ts";
import { jsonDocument } from "../print/json.ts";
import { dataDir, readProfile } from "../profile.ts";

interface LoginFlags {
  issuer?: string;
  clientId?: string;
  scope: string;
  port: string;
  registry?: string;
  policy?: string;
  json?: true;
}

/** Registers `reeve login` and `reeve logout`. */
export function registerLogin(program: Command, context: CommandContext): void {
  withJson(program.command("login"))
    .description(
      "Log in at an OpenID Connect provider with a browser. The other commands then use that login for this registry.",
    )
    .option("--issuer <url>", "the provider's issuer (REEVE_OIDC_ISSUER)")
    .option("--client-id <id>", "the client that the provider knows this command as (REEVE_OIDC_CLIENT_ID)")
    .option("--scope <scopes>", "what is asked of the provider", "openid profile email offline_access")
    .option("--port <port>", "the port on 127.0.0.1 that the browser comes back to; 0 takes any", "0")
    .option("--registry <url>", "the registry that the login is for (REEVE_REGISTRY_URL)")
    .option("--policy <url>", "policy's address (REEVE_POLICY_URL)")
    .action((flags: LoginFlags) => login(flags, context));
  program
    .command("logout")
    .description("Forget the login of `reeve login`.")
    .action(async () => {
      const known = await removeLogin(dataDir(context.env));
      context.stderr.write(`reeve: ${known ? "logged out" : "there was no login"}\n`);
    });
}

async function login(flags: LoginFlags, context: CommandContext): Promise<void> {
  const { env, stderr, stdout } = context;
  const profile = await readProfile(dataDir(env));
  const registry = flags.registry || env.REEVE_REGISTRY_URL || profile?.registry;
  const issuer = flags.issuer || env.REEVE_OIDC_ISSUER;
  const clientId = flags.clientId || env.REEVE_OIDC_CLIENT_ID;
  if (!registry) throw new UsageError("--registry: say which registry the login is for");
  if (!issuer) throw new UsageError("--issuer: say which provider to log in at");
  if (!clientId) throw new UsageError("--client-id: say as which client");
  const port = Number(flags.port);
  if (!Number.isInteger(port) || port < 0 || port > 65_535) throw new UsageError("--port: must be 0 to 65535");
  const provider = { issuer, clientId };
  const left = new AbortController();
  const stop = context.onInterrupt(() => left.abort(new UsageError("the login was interrupted")));
  try {
    const tokens = await logIn({
      provider,
      scope: flags.scope,
      port,
      signal: left.signal,
      show: (url) => stderr.write(`reeve: open this address in a browser:\n\n  ${url}\n\n`),
    });
    const policy =
      flags.policy || env.REEVE_POLICY_URL || (registry === profile?.registry ? profile.policy : undefined);
    await writeLogin(dataDir(env), { provider, registry, policy, ...tokens });
    const until = new Date(tokens.expireMs).toISOString();
    if (flags.json)
      stdout.write(jsonDocument({ registry, issuer, expires: until, refreshable: !!tokens.refreshToken }));
    else stderr.write(`reeve: logged in for ${registry}\n`);
  } finally {
    stop();
  }
}
