import { afterAll, beforeAll, expect, test } from "vitest";
import { type ControlPlane, startControlPlane } from "../../testkit/control-plane.ts";
import { MCP_CLIENTS } from "../../testkit/mcp-clients.ts";
import { type OidcProvider, startOidcProvider } from "../../testkit/oidc-provider.ts";

const RESOURCE = "https://reeve.example/mcp";
const METADATA = "/.well-known/oauth-protected-resource";

let provider: OidcProvider;
let plane: ControlPlane;

beforeAll(async () => {
  provider = await startOidcProvider();
  plane = await startControlPlane({
    registryEnv: {
      REEVE_OIDC_ISSUER: provider.issuer,
      REEVE_OIDC_AUDIENCE: `${provider.clientId},${RESOURCE}`,
      REEVE_OIDC_ROLES: "agents=agent",
    },
  });
});
afterAll(async () => {
  await plane?.close();
  await provider?.close();
});

const tokenFor = (aud: string, groups: readonly string[] = ["agents"], seconds = 60) =>
  provider.sign(
    { iss: provider.issuer, aud, sub: "ann", groups: [...groups], exp: Math.floor(Date.now() / 1000) + seconds },
    "at+jwt",
  );

test("a client without a token is sent to the provider", async () => {
  const refused = await fetch(`${plane.registry.url}/mcp`, { method: "POST", body: "{}" });
  const challenge = refused.headers.get("www-authenticate");
  expect([refused.status, challenge]).toEqual([401, `Bearer resource_metadata="https://reeve.example${METADATA}/mcp"`]);
  for (const path of [METADATA, `${METADATA}/mcp`]) {
    const answer = await fetch(plane.registry.url + path);
    expect(await answer.json()).toEqual({
      resource: RESOURCE,
      resource_name: "Reeve",
      authorization_servers: [provider.issuer],
      bearer_methods_supported: ["header"],
    });
  }
});

test("an access token for the resource lets in, as the role that its claims give", async () => {
  const client = await MCP_CLIENTS["SDK v2, 2026-07-28"](plane.registry.url, await tokenFor(RESOURCE));
  expect((await client.use("device_ping", {})).isError).toBe(false);
  await client.close();
});

test("a token for another resource, of another type, without a role, or that ran out, does not", async () => {
  const refused = [
    await tokenFor("https://other.example/mcp"),
    await tokenFor(RESOURCE, ["guests"]),
    await provider.sign({ iss: provider.issuer, aud: RESOURCE, sub: "ann", groups: ["agents"], exp: 4e9 }),
    await tokenFor(provider.clientId),
    await tokenFor(RESOURCE, ["agents"], -60),
    "rv_nobody",
  ];
  for (const token of refused) {
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
    const answer = await fetch(`${plane.registry.url}/mcp`, { method: "POST", headers, body: "{}" });
    expect([answer.status, answer.headers.get("www-authenticate")]).toEqual([
      401,
      `Bearer error="invalid_token", resource_metadata="https://reeve.example${METADATA}/mcp"`,
    ]);
  }
});
