import { hash } from "node:crypto";
import { createRemoteJWKSet, errors, type JWTVerifyGetKey, jwtVerify } from "jose";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { fault } from "../fault/fault.ts";
import { principalFromClaims, type RoleMapping } from "./oidc-claims.ts";
import type { Authenticate, Principal } from "./principal.ts";

/** Which provider's tokens are accepted. */
export interface OidcOptions {
  /** The issuer, exactly as its tokens say it, such as "https://accounts.example.com". */
  issuer: string;
  /** The audiences that are meant for this control plane: most often the client's id. */
  audiences: readonly string[];
  /**
   * Those of the audiences that are addresses which clients of OAuth call: they take access tokens (RFC 9068) alone, and the
   * others ID tokens alone. Default none.
   */
  resources?: readonly string[];
  mapping: RoleMapping;
  /** Milliseconds since 1970. Default Date.now. */
  now?: () => number;
}

/** Asymmetric ones only: a public key must never be taken for a shared secret. */
const ALGORITHMS = [
  "ES256",
  "ES384",
  "ES512",
  "RS256",
  "RS384",
  "RS512",
  "PS256",
  "PS384",
  "PS512",
  "EdDSA",
  "Ed25519",
];
/** The largest token that is looked at, in characters. */
const MAX_TOKEN = 16 * 1024;
/** How long a verified token is remembered, in milliseconds. */
const REMEMBERED_MS = 60_000;
/** How long the provider's keys are remembered. A withdrawn key is noticed after this and REMEMBERED_MS at the latest. */
const KEYS_REMEMBERED_MS = 60_000;
/** Tokens that are remembered at most. */
const MAX_REMEMBERED = 10_000;
const CLOCK_SKEW_SECONDS = 30;
const DISCOVERY_TIMEOUT_MS = 5000;

/** The type of an access token, which no ID token has (RFC 9068, 2.1). */
const ACCESS_TOKEN = /^(?:application\/)?at\+jwt$/i;

const JWT = /^[Bb]earer ([A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+)$/;

/**
 * Lets people in with the ID tokens of an OpenID Connect provider (OpenID Connect Core 1.0), verified by the keys that
 * its discovery document names. A header that holds no JWT is left to others. Throws TOKEN_REFUSED with why: expired,
 * audience, issuer, signature or claims; and NOT_READY where the provider cannot be asked for its keys.
 */
export function authenticateByOidc(options: OidcOptions): Authenticate {
  const { issuer, audiences, resources = [], mapping, now = Date.now } = options;
  const remembered = new Map<string, { principal: Principal; untilMs: number }>();
  let keys: Promise<JWTVerifyGetKey> | undefined;
  const keysOfIssuer = (): Promise<JWTVerifyGetKey> => {
    keys ??= discoverKeys(issuer).catch((error: unknown) => {
      keys = undefined; // asked again by the next token
      throw error;
    });
    return keys;
  };
  const verify = async (token: string): Promise<{ principal: Principal; expireMs: number }> => {
    const key = await keysOfIssuer().catch((error: unknown): never => {
      throw providerUnavailable(issuer, error);
    });
    const { payload, protectedHeader } = await jwtVerify(token, key, {
      issuer,
      audience: [...audiences],
      algorithms: ALGORITHMS,
      clockTolerance: CLOCK_SKEW_SECONDS,
      requiredClaims: ["exp", "sub"],
      currentDate: new Date(now()),
    }).catch((error: unknown): never => {
      throw refusalOf(error) ?? providerUnavailable(issuer, error);
    });
    const isAccessToken = ACCESS_TOKEN.test(protectedHeader.typ ?? "");
    const meant = [payload.aud ?? []].flat().filter((audience) => audiences.includes(audience));
    if (!meant.some((audience) => resources.includes(audience) === isAccessToken)) throw wrongType(isAccessToken);
    const expireMs = (payload.exp ?? 0) * 1000;
    // As a new request with the token would be let in for as long.
    const principal = { ...principalFromClaims(payload, mapping), expireMs: expireMs + CLOCK_SKEW_SECONDS * 1000 };
    return { principal: Object.freeze(principal), expireMs };
  };
  return async (authorization) => {
    if (authorization === undefined || authorization.length > MAX_TOKEN) return undefined;
    const token = JWT.exec(authorization)?.[1];
    if (token === undefined) return undefined;
    const digest = hash("sha256", token);
    const known = remembered.get(digest);
    if (known !== undefined && now() < known.untilMs) return known.principal;
    const { principal, expireMs } = await verify(token);
    if (remembered.size >= MAX_REMEMBERED) remembered.clear();
    remembered.set(digest, { principal, untilMs: Math.min(expireMs, now() + REMEMBERED_MS) });
    return principal;
  };
}

function wrongType(isAccessToken: boolean): Error {
  const message = isAccessToken
    ? "an access token is for the address of a resource, and this one names none of ours"
    : "an ID token is for a client, and the address of a resource takes access tokens (at+jwt, RFC 9068)";
  return fault(ErrorReason.TOKEN_REFUSED, { why: "audience" }, { message });
}

async function discoverKeys(issuer: string): Promise<JWTVerifyGetKey> {
  const url = `${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`;
  const answer = await fetch(url, { signal: AbortSignal.timeout(DISCOVERY_TIMEOUT_MS), redirect: "error" });
  if (!answer.ok) throw new Error(`${url} answered ${answer.status}`);
  const document: unknown = await answer.json();
  const read = (key: string) =>
    typeof document === "object" && document !== null ? Reflect.get(document, key) : undefined;
  // The document must be that issuer's own (OpenID Connect Discovery 1.0, 4.3).
  if (read("issuer") !== issuer) throw new Error(`${url} is the document of the issuer ${String(read("issuer"))}`);
  const jwks: unknown = read("jwks_uri");
  if (typeof jwks !== "string" || !URL.canParse(jwks)) throw new Error(`${url} names no keys`);
  return createRemoteJWKSet(new URL(jwks), {
    timeoutDuration: DISCOVERY_TIMEOUT_MS,
    cacheMaxAge: KEYS_REMEMBERED_MS,
  });
}

/** No token is valid or invalid while its provider cannot be asked. */
function providerUnavailable(issuer: string, cause: unknown): Error {
  const detail = cause instanceof Error ? cause.message : String(cause);
  const message = `the provider ${issuer} cannot be asked for its keys, so its tokens cannot be checked: ${detail}`;
  return fault(ErrorReason.NOT_READY, {}, { message, cause });
}

/** What makes a token invalid; undefined where it is not the token. */
function refusalOf(error: unknown): Error | undefined {
  const why = whyRefused(error);
  if (why === undefined) return undefined;
  const detail = error instanceof Error ? error.message : "";
  return fault(ErrorReason.TOKEN_REFUSED, { why }, { message: `the token is refused: ${detail}`, cause: error });
}

function whyRefused(error: unknown): string | undefined {
  if (error instanceof errors.JWTExpired) return "expired";
  if (error instanceof errors.JWTClaimValidationFailed) return WHY_OF_CLAIM.get(error.claim) ?? "claims";
  if (SIGNATURE_ERRORS.some((kind) => error instanceof kind)) return "signature";
  return error instanceof errors.JWTInvalid ? "claims" : undefined;
}

const SIGNATURE_ERRORS = [
  errors.JWSSignatureVerificationFailed,
  errors.JWSInvalid,
  errors.JWKSNoMatchingKey,
  errors.JWKSMultipleMatchingKeys,
  errors.JOSEAlgNotAllowed,
  errors.JOSENotSupported,
];

const WHY_OF_CLAIM = new Map([
  ["aud", "audience"],
  ["iss", "issuer"],
  ["exp", "expired"],
]);
