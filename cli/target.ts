import { isLoopback } from "../lib/config/loopback.ts";
import type { CommandContext } from "./command-context.ts";
import { UsageError } from "./errors/usage-error.ts";
import type { Login } from "./login/login-file.ts";
import type { Profile } from "./profile.ts";

/** What the command line said about where to go. */
export interface TargetFlags {
  registry?: string;
  policy?: string;
  token?: string;
  /** A file with the authorities that https addresses are trusted by. */
  caFile?: string;
}

/** Where a command goes, as whom. */
export interface Target {
  /** The registry's address. */
  registry: string;
  /** Policy's address; undefined where it is not known. */
  policy: string | undefined;
  /** The agent service's address; undefined where it is not known. */
  agent: string | undefined;
  token: string;
  /** The sockets to dial in place of the addresses, where the control plane is this user's own. */
  sockets: { registry: string; policy: string; agent: string | undefined } | undefined;
  /** A file with the authorities that https addresses are trusted by; undefined for the system's. */
  caFile: string | undefined;
  /** The state folder, where the target is the control plane that the profile is about. */
  stateDir: string | undefined;
  /** Where the token is from: a flag or the environment, the login, or the profile, whose token is no operator's. */
  origin: "given" | "login" | "profile";
  /** Worth showing the person at the terminal. */
  warnings: readonly string[];
}

/** True where flags and environment leave open where to go or as whom, so that a login may say it. */
export function needsLogin(flags: TargetFlags, env: CommandContext["env"]): boolean {
  return !(flags.registry || env.REEVE_REGISTRY_URL) || !(flags.token || env.REEVE_TOKEN);
}

/**
 * Where to go: a flag, else the environment, else the login, else the profile, each address by itself. The token of a
 * login or a profile is sent to its own addresses only, so that it leaks to no other address that is put into the
 * environment.
 *
 * Throws a UsageError where something is missing, and where the token would cross a network in the clear.
 */
export function resolveTarget(
  flags: TargetFlags,
  env: CommandContext["env"],
  profile: Profile | undefined,
  login?: Login,
): Target {
  const registry = flags.registry || env.REEVE_REGISTRY_URL || login?.registry || profile?.registry;
  if (registry === undefined || registry === "") throw unknownControlPlane();
  const home = profile !== undefined && sameAddress(registry, profile.registry);
  const entered = login !== undefined && sameAddress(registry, login.registry);
  const policy =
    flags.policy || env.REEVE_POLICY_URL || (entered ? login.policy : undefined) || (home ? profile.policy : undefined);
  const own = flags.token || env.REEVE_TOKEN;
  const inside = home && (policy === undefined || sameAddress(policy, profile.policy));
  const isFor = entered && (policy === undefined || sameAddress(policy, login.policy ?? ""));
  const agent = agentAddress(env.REEVE_AGENT_URL, home ? profile.agent : undefined, Boolean(own));
  const token = own || (isFor ? login.idToken : undefined) || (inside ? profile.token : undefined);
  if (token === undefined || token === "") throw noToken(profile !== undefined);
  const isNamed = Boolean(flags.registry || flags.policy || env.REEVE_REGISTRY_URL || env.REEVE_POLICY_URL);
  const origin = own ? "given" : isFor ? "login" : "profile";
  const sockets = inside && (origin === "profile" || !isNamed) ? socketsOf(profile) : undefined;
  if (origin === "profile" && sockets === undefined) checkAuthenticated([registry, policy, agent]);
  const isAllowed = env.REEVE_ALLOW_PLAINTEXT === "true";
  for (const address of [registry, policy, agent]) if (address !== undefined) checkAddress(address, isAllowed);
  return {
    registry,
    policy,
    agent,
    token,
    caFile: flags.caFile || env.REEVE_CA_FILE || (home ? profile.caFile : undefined),
    sockets,
    origin,
    stateDir: inside && profile.stateDir !== "" ? profile.stateDir : undefined,
    warnings: [...(flags.token ? [TOKEN_IN_SIGHT] : []), ...[registry, policy, agent].flatMap(inClear)],
  };
}

/** A token that was not given for it goes to no other agent service than the profile's. */
function agentAddress(named: string | undefined, known: string | undefined, isGiven: boolean): string | undefined {
  if (!named) return known;
  return isGiven || (known !== undefined && sameAddress(named, known)) ? named : undefined;
}

function socketsOf({ registrySocket: registry, policySocket: policy, agentSocket: agent }: Profile): Target["sockets"] {
  return registry === undefined || policy === undefined ? undefined : { registry, policy, agent };
}

/** A port of this machine shows nothing of who listens there: while Reeve does not run, that can be any program. */
function checkAuthenticated(addresses: readonly (string | undefined)[]): void {
  if (addresses.every((address) => address === undefined || URL.parse(address)?.protocol === "https:")) return;
  throw new UsageError("the profile names no sockets, and its token goes to no open port", [
    "start `reeve up` again: it writes a new profile",
  ]);
}

const TOKEN_IN_SIGHT =
  "--token can be seen by everyone on this machine in the list of processes; set REEVE_TOKEN instead";

function unknownControlPlane(): UsageError {
  return new UsageError(
    "no control plane is known: start one with `reeve up`, or set REEVE_REGISTRY_URL and REEVE_TOKEN",
  );
}

function noToken(hasProfile: boolean): UsageError {
  const why = hasProfile ? ": the one that `reeve up` left is for its own control plane" : "";
  return new UsageError(`no token is known for this address${why}`, ["set REEVE_TOKEN"]);
}

function checkAddress(address: string, isPlaintextAllowed: boolean): void {
  const url = URL.parse(address);
  if (url?.protocol !== "http:" && url?.protocol !== "https:")
    throw new UsageError(`${JSON.stringify(address)} is no address such as http://127.0.0.1:7400`);
  if (url.protocol === "https:" || isLoopback(url.hostname) || isPlaintextAllowed) return;
  throw new UsageError(`the token and all calls would go to ${url.host} in the clear`, [
    "use an https address",
    "where something else encrypts the way, set REEVE_ALLOW_PLAINTEXT=true",
  ]);
}

function sameAddress(one: string, other: string): boolean {
  return (URL.parse(one)?.href ?? one) === (URL.parse(other)?.href ?? other);
}

function inClear(address: string | undefined): string[] {
  const url = URL.parse(address ?? "");
  if (url?.protocol !== "http:" || isLoopback(url.hostname)) return [];
  return [`the token and all calls go to ${url.host} in the clear: use an https address`];
}
