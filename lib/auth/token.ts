import { hash, randomBytes, timingSafeEqual } from "node:crypto";
import type { Role } from "../../gen/ts/reeve/options/v1/access_pb.ts";
import type { Principal } from "./principal.ts";
import { roleFromName, roleName, roleNames } from "./roles.ts";

/** What is kept of a token: never the token itself. */
export interface TokenEntry {
  /** 12 hexadecimal digits; the principal's id. */
  readonly id: string;
  /** For people. */
  readonly name: string;
  /** Names of roles, one or more. */
  readonly roles: readonly string[];
  /** SHA-256 of the whole token text, in hexadecimal. */
  readonly hash: string;
  /** When it was issued, ISO 8601. */
  readonly created: string;
  /** From when it is refused, ISO 8601. Left out: never. */
  readonly expires?: string;
  /** The tools that it allows, by name, one or more. Left out: all. */
  readonly tools?: readonly string[];
}

export interface TokenRequest {
  name: string;
  roles: readonly Role[];
  expires?: Date;
  tools?: readonly string[];
}

/** A new token and what is kept of it. The token is to be shown once. */
export interface IssuedToken {
  token: string;
  entry: TokenEntry;
}

/** An entry made ready for the hot path. */
export interface KnownToken {
  readonly hash: Buffer;
  /** Milliseconds since the epoch; Infinity for never. */
  readonly expires: number;
  readonly principal: Principal;
}

// 32 random bytes need no slow hash: there is nothing to guess, so SHA-256 is right here.
const FORM = /^[Bb]earer rv_([0-9a-f]{12})_([A-Za-z0-9_-]{43})$/;
const MAX_HEADER = 80;
const TOOL = /^[A-Za-z][\w.:-]{0,127}$/;

/** Makes a token of the form `rv_<id>_<43 base64url characters of 32 random bytes>`. Throws on an unknown or no role. */
export function mintToken(
  request: TokenRequest,
  now: number,
  random: (size: number) => Buffer = randomBytes,
): IssuedToken {
  const roles = request.roles.map((role) => {
    const name = roleName(role);
    if (name === undefined || !roleNames.includes(name)) throw new TypeError(`role ${role} cannot be given to a token`);
    return name;
  });
  if (roles.length === 0) throw new TypeError("a token needs at least one role");
  const { tools } = request;
  if (tools !== undefined) requireToolNames(tools);
  const id = random(6).toString("hex");
  const token = `rv_${id}_${random(32).toString("base64url")}`;
  const entry: TokenEntry = {
    id,
    name: request.name,
    roles,
    hash: hash("sha256", token, "hex"),
    created: new Date(now).toISOString(),
    ...(request.expires && { expires: request.expires.toISOString() }),
    ...(tools && { tools: [...new Set(tools)] }),
  };
  return { token, entry };
}

/** Makes an entry ready for `matchToken`. Throws where the entry is not what `mintToken` writes. */
export function knownToken(entry: TokenEntry): KnownToken {
  const roles = entry.roles.map((name) => {
    const role = roleFromName(name);
    if (role === undefined) throw new TypeError(`token ${entry.id} has the unknown role "${name}"`);
    return role;
  });
  const kind = roles[0] === undefined ? undefined : roleName(roles[0]);
  if (kind === undefined) throw new TypeError(`token ${entry.id} has no role`);
  if (!/^[0-9a-f]{64}$/.test(entry.hash)) throw new TypeError(`token ${entry.id} has no valid hash`);
  const expires = entry.expires === undefined ? Number.POSITIVE_INFINITY : Date.parse(entry.expires);
  if (Number.isNaN(expires)) throw new TypeError(`token ${entry.id} has no valid time in "expires"`);
  const { tools } = entry;
  if (tools !== undefined) requireToolNames(tools);
  const principal = Object.freeze({
    id: entry.id,
    kind,
    roles: Object.freeze(roles),
    name: entry.name,
    ...(Number.isFinite(expires) && { expireMs: expires }),
    ...(tools && { tools: Object.freeze([...tools]) }),
  });
  return { hash: Buffer.from(entry.hash, "hex"), expires, principal };
}

/** Whether a tool may be called so. */
export function isToolName(name: string): boolean {
  return TOOL.test(name);
}

/** An empty list would be read as none, and a pattern as a name that no tool has. */
function requireToolNames(tools: readonly string[]): void {
  const wrong = tools.find((name) => !isToolName(name));
  if (wrong !== undefined) throw new TypeError(`${JSON.stringify(wrong)} is no name of a tool`);
  if (tools.length === 0) throw new TypeError("a list of tools needs at least one");
}

/** Whether an Authorization header has the form of a token. */
export function isToken(authorization: string | undefined): boolean {
  return authorization !== undefined && authorization.length <= MAX_HEADER && FORM.test(authorization);
}

/**
 * The principal of an Authorization header. The id finds the entry, which shows an attacker only what is no secret; the
 * hashes are compared in constant time.
 */
export function matchToken(
  known: ReadonlyMap<string, KnownToken>,
  authorization: string | undefined,
  now: number,
): Principal | undefined {
  if (authorization === undefined || authorization.length > MAX_HEADER) return undefined;
  const parts = FORM.exec(authorization);
  const entry = parts?.[1] === undefined ? undefined : known.get(parts[1]);
  if (entry === undefined) return undefined;
  const given = hash("sha256", authorization.slice("Bearer ".length), "buffer");
  return timingSafeEqual(given, entry.hash) && now < entry.expires ? entry.principal : undefined;
}
