import {
  allowInsecureRequests,
  authorizationCodeGrant,
  buildAuthorizationUrl,
  type Configuration,
  type CustomFetch,
  calculatePKCECodeChallenge,
  customFetch,
  discovery,
  None,
  randomNonce,
  randomPKCECodeVerifier,
  randomState,
  refreshTokenGrant,
  type TokenEndpointResponse,
} from "openid-client";
import { isLoopback } from "../../lib/config/loopback.ts";
import { UsageError } from "../errors/usage-error.ts";
import { listenForCallback } from "./callback.ts";

/** The provider of the login, and the client that asks it. */
export interface Provider {
  issuer: string;
  /** A public client: it has no secret, since a command line could keep none. */
  clientId: string;
}

/** What a login came to. */
export interface LoginTokens {
  /** The ID token: what Reeve's services take as a bearer token. */
  idToken: string;
  /** Gets the next ID token without a browser. Undefined where the provider gives none. */
  refreshToken: string | undefined;
  /** When the ID token expires, in milliseconds since 1970. */
  expireMs: number;
}

/** How a login goes. */
export interface LoginOptions {
  provider: Provider;
  scope: string;
  /** The port on loopback that the browser comes back to; 0 takes any. */
  port: number;
  /** Shows the address that a browser has to open. */
  show(url: string): void;
  signal: AbortSignal;
}

/** The authorization code flow with PKCE (RFC 7636) and a redirect to loopback (RFC 8252). */
export async function logIn({ provider, scope, port, show, signal }: LoginOptions): Promise<LoginTokens> {
  const config = await discover(provider);
  const callback = await listenForCallback(port);
  try {
    const pkceCodeVerifier = randomPKCECodeVerifier();
    const [expectedState, expectedNonce] = [randomState(), randomNonce()];
    const url = buildAuthorizationUrl(config, {
      redirect_uri: callback.redirectUri,
      scope,
      code_challenge: await calculatePKCECodeChallenge(pkceCodeVerifier),
      code_challenge_method: "S256",
      state: expectedState,
      nonce: expectedNonce,
      // OpenID Connect Core 1.0, section 11: without it the provider ignores offline_access.
      ...(scope.split(" ").includes("offline_access") && { prompt: "consent" }),
    });
    show(url.href);
    const arrived = await callback.arrived(signal);
    return tokensOf(
      await authorizationCodeGrant(config, arrived, {
        pkceCodeVerifier,
        expectedState,
        expectedNonce,
        idTokenExpected: true,
      }),
    );
  } finally {
    callback.close();
  }
}

/**
 * The next ID token. A provider that sends no new refresh token lets the old one be used again. Rejects when the signal is
 * aborted.
 */
export async function refresh(provider: Provider, refreshToken: string, signal: AbortSignal): Promise<LoginTokens> {
  const config = await discover(provider, signal);
  const tokens = tokensOf(await refreshTokenGrant(config, refreshToken));
  return { ...tokens, refreshToken: tokens.refreshToken ?? refreshToken };
}

function discover({ issuer, clientId }: Provider, signal?: AbortSignal): Promise<Configuration> {
  const url = URL.parse(issuer);
  if (url === null) throw new UsageError(`--issuer: ${JSON.stringify(issuer)} is no address`);
  const isNear = isLoopback(url.hostname);
  if (url.protocol !== "https:" && !isNear) throw new UsageError("--issuer: must be an https address");
  return discovery(url, clientId, undefined, None(), {
    ...(isNear && { execute: [allowInsecureRequests] }),
    ...(signal !== undefined && { [customFetch]: fetchWith(signal) }),
  });
}

/** Fetches as the library does, but no longer than the signal lets it. */
function fetchWith(signal: AbortSignal): CustomFetch {
  return (url, options) => {
    const signals = options.signal === undefined ? [signal] : [signal, options.signal];
    return fetch(url, { ...options, signal: AbortSignal.any(signals) } as RequestInit);
  };
}

function tokensOf(answer: TokenEndpointResponse & { claims(): { exp: number } | undefined }): LoginTokens {
  const claims = answer.claims();
  if (answer.id_token === undefined || claims === undefined) throw new Error("the provider sent no ID token");
  return { idToken: answer.id_token, refreshToken: answer.refresh_token, expireMs: claims.exp * 1000 };
}
