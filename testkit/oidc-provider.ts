import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { exportJWK, generateKeyPair, type JWTPayload, SignJWT } from "jose";
import Provider from "oidc-provider";

/** A real OpenID Connect provider on loopback, at which everybody is logged in as whom the test says. */
export interface OidcProvider {
  issuer: string;
  /** A public client with PKCE and loopback redirects. */
  clientId: string;
  /** Another client of the same provider: its tokens are for another audience. */
  otherClientId: string;
  /** Who is logged in by the next login, and to which groups they belong. */
  logInAs(account: string, groups: readonly string[]): void;
  /** Opens an address as a browser would: follows redirects and keeps cookies, until the provider sends it elsewhere. */
  browse(url: string): Promise<void>;
  /** A token with the provider's own signature. An ID token, unless its type is that of an access token. */
  sign(claims: JWTPayload, typ?: "at+jwt"): Promise<string>;
  close(): Promise<void>;
}

const CLIENT = {
  token_endpoint_auth_method: "none",
  application_type: "native",
  redirect_uris: ["http://127.0.0.1/callback"],
  response_types: ["code"],
  grant_types: ["authorization_code", "refresh_token"],
} as const;

/** Starts one. */
export async function startOidcProvider(): Promise<OidcProvider> {
  const groupsOf = new Map<string, readonly string[]>();
  let account = "unknown";
  const { privateKey } = await generateKeyPair("RS256", { extractable: true });
  const key = { ...(await exportJWK(privateKey)), kid: "test", use: "sig", alg: "RS256" };
  let handle: (request: IncomingMessage, response: ServerResponse) => void = (_, response) => response.end();
  const server = createServer((request, response) => handle(request, response));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const provider = new Provider(issuer, {
    clients: [
      {
        ...CLIENT,
        client_id: "reeve",
        redirect_uris: [...CLIENT.redirect_uris],
        response_types: ["code"],
        grant_types: [...CLIENT.grant_types],
      },
      {
        ...CLIENT,
        client_id: "other",
        redirect_uris: [...CLIENT.redirect_uris],
        response_types: ["code"],
        grant_types: [...CLIENT.grant_types],
      },
    ],
    jwks: { keys: [key] },
    cookies: { keys: ["for tests only"] },
    claims: { openid: ["sub"], profile: ["preferred_username", "groups"], email: ["email"] },
    // Claims of the scopes stand in the ID token itself, as most providers have it.
    conformIdTokenClaims: false,
    features: { devInteractions: { enabled: false } },
    interactions: { url: (_, { uid }) => `/interaction/${uid}` },
    ttl: { IdToken: 3600, AccessToken: 3600, Grant: 3600, Interaction: 600, Session: 3600 },
    issueRefreshToken: async () => true,
    findAccount: (_, sub) => ({
      accountId: sub,
      claims: () => ({ sub, preferred_username: sub, groups: [...(groupsOf.get(sub) ?? [])] }),
    }),
  });
  const callback = provider.callback();
  const answerInteraction = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { prompt, params, session } = await provider.interactionDetails(request, response);
    if (prompt.name === "login") {
      await provider.interactionFinished(request, response, { login: { accountId: account } });
      return;
    }
    const grant = new provider.Grant({ accountId: session?.accountId ?? account, clientId: String(params.client_id) });
    grant.addOIDCScope(String(params.scope));
    await provider.interactionFinished(request, response, { consent: { grantId: await grant.save() } });
  };
  handle = (request, response) => {
    if (request.url?.startsWith("/interaction/")) void answerInteraction(request, response);
    else void callback(request, response);
  };
  return {
    issuer,
    clientId: "reeve",
    otherClientId: "other",
    logInAs(name, groups) {
      account = name;
      groupsOf.set(name, groups);
    },
    browse: (url) => browse(url, issuer),
    sign: (claims, typ) =>
      new SignJWT(claims).setProtectedHeader({ alg: "RS256", kid: "test", ...(typ && { typ }) }).sign(privateKey),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function browse(url: string, issuer: string): Promise<void> {
  const cookies = new Map<string, string>();
  for (let next = new URL(url); ; ) {
    const header = [...cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    const answer = await fetch(next, { redirect: "manual", headers: { cookie: header } });
    for (const cookie of answer.headers.getSetCookie()) {
      const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(cookie) ?? [];
      if (value === "") cookies.delete(name);
      else cookies.set(name, value);
    }
    const location = answer.headers.get("location");
    if (location === null) {
      if (!answer.ok) throw new Error(`${next.href} answered ${answer.status}: ${await answer.text()}`);
      return;
    }
    const from: URL = next;
    next = new URL(location, from);
    // Cookies are the provider's; the command's own page gets none.
    if (next.origin !== issuer) cookies.clear();
  }
}
