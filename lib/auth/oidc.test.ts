import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Code, ConnectError } from "@connectrpc/connect";
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { Role } from "../../gen/ts/reeve/options/v1/access_pb.ts";
import { type OidcProvider, startOidcProvider } from "../../testkit/oidc-provider.ts";
import { faultDetail } from "../fault/fault.ts";
import { firstThatKnows } from "./authenticate.ts";
import { authenticateByOidc, type OidcOptions } from "./oidc.ts";
import { parseRoleMapping, principalFromClaims } from "./oidc-claims.ts";
import type { Authenticate } from "./principal.ts";
import { createTokenFile } from "./token-file.ts";

let provider: OidcProvider;
beforeAll(async () => {
  provider = await startOidcProvider();
});
afterAll(() => provider.close());

const mapping = parseRoleMapping("groups", "admins=operator,everyone=auditor");

function authenticator(change: Partial<OidcOptions> = {}) {
  return authenticateByOidc({ issuer: provider.issuer, audiences: [provider.clientId], mapping, ...change });
}

function claims(change: Record<string, unknown> = {}) {
  const now = Math.floor(Date.now() / 1000);
  return {
    iss: provider.issuer,
    aud: provider.clientId,
    sub: "ada",
    iat: now,
    exp: now + 600,
    groups: ["admins"],
    ...change,
  };
}

async function refusal(header: string, change: Partial<OidcOptions> = {}): Promise<string> {
  try {
    await authenticator(change)(header);
  } catch (error: unknown) {
    expect(faultDetail(error)?.reason).toBe(ErrorReason.TOKEN_REFUSED);
    return faultDetail(error)?.metadata.why ?? "";
  }
  throw new Error("it was not refused");
}

describe("an ID token", () => {
  test("that is good gives a principal with the roles of its groups", async () => {
    const principal = await authenticator()(`Bearer ${await provider.sign(claims({ preferred_username: "ada@x" }))}`);
    const expireMs = expect.any(Number) as number;
    expect(principal).toEqual({ id: "oidc/ada", kind: "operator", roles: [Role.OPERATOR], name: "ada@x", expireMs });
  });

  test("of another audience is refused", async () => {
    const token = await provider.sign(claims({ aud: provider.otherClientId }));
    expect(await refusal(`Bearer ${token}`)).toBe("audience");
  });

  test("that has expired is refused, also where it was good before", async () => {
    let now = Date.now();
    const authenticate = authenticator({ now: () => now });
    const header = `Bearer ${await provider.sign(claims())}`;
    expect(await authenticate(header)).toBeDefined();
    now += 3_600_000;
    await expect(authenticate(header)).rejects.toSatisfy((error) => faultDetail(error)?.metadata.why === "expired");
  });

  test("of another issuer is refused, although the key is known", async () => {
    expect(await refusal(`Bearer ${await provider.sign(claims({ iss: "https://elsewhere.example" }))}`)).toBe("issuer");
  });

  test("signed by another issuer is refused", async () => {
    const { privateKey } = await generateKeyPair("RS256");
    const token = await new SignJWT(claims()).setProtectedHeader({ alg: "RS256", kid: "test" }).sign(privateKey);
    expect(await refusal(`Bearer ${token}`)).toBe("signature");
  });

  test("signed with a shared secret is refused", async () => {
    const token = await new SignJWT(claims()).setProtectedHeader({ alg: "HS256" }).sign(new Uint8Array(32));
    expect(await refusal(`Bearer ${token}`)).toBe("signature");
  });

  test("without an end is refused", async () => {
    expect(await refusal(`Bearer ${await provider.sign(claims({ exp: undefined }))}`)).toBe("expired");
  });

  test("of a person without a group that counts is refused", async () => {
    expect(await refusal(`Bearer ${await provider.sign(claims({ groups: ["guests"] }))}`)).toBe("claims");
  });

  test("that requires an unknown extension is refused", async () => {
    const [, ...rest] = (await provider.sign(claims())).split(".");
    const header = Buffer.from(JSON.stringify({ alg: "RS256", kid: "test", crit: ["x"], x: 1 })).toString("base64url");
    expect(await refusal(`Bearer ${[header, ...rest].join(".")}`)).toBe("signature");
  });
});

describe("a provider that cannot be asked", () => {
  const folder = mkdtempSync(join(tmpdir(), "reeve-oidc-"));
  afterAll(() => rmSync(folder, { recursive: true }));

  test("is no fault of the token's, and may end; people of the token file are let in", async () => {
    const unreachable = authenticator({ issuer: "http://127.0.0.1:1" });
    const error: unknown = await Promise.resolve(unreachable(`Bearer ${await provider.sign(claims())}`)).catch(
      (thrown: unknown) => thrown,
    );
    expect([ConnectError.from(error).code, faultDetail(error)?.reason]).toEqual([
      Code.Unavailable,
      ErrorReason.NOT_READY,
    ]);
    expect(ConnectError.from(error).rawMessage).toContain("http://127.0.0.1:1");
    const tokens = createTokenFile(join(folder, "tokens.json"));
    const { token, entry } = tokens.issueToken({ name: "a", roles: [Role.AGENT] });
    const both = firstThatKnows(tokens.authenticate, unreachable);
    expect(await both(`Bearer ${token}`)).toMatchObject({ id: entry.id });
    expect(await both("Bearer rv_0123456789ab_unknown")).toBeUndefined();
  });
});

describe("the provider's keys", () => {
  let issuer: string;
  let keys: object[];
  let server: Server;
  let privateKey: CryptoKey;
  beforeEach(async () => {
    const pair = await generateKeyPair("ES256", { extractable: true });
    privateKey = pair.privateKey;
    keys = [{ ...(await exportJWK(pair.publicKey)), kid: "one" }];
    server = createServer((request, response) => {
      const isKeys = request.url === "/keys";
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify(isKeys ? { keys } : { issuer, jwks_uri: `${issuer}/keys` }));
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() });
  });
  afterEach(() => {
    vi.useRealTimers();
    server.close();
    server.closeAllConnections();
  });
  const header = async () => {
    const jwt = new SignJWT({ ...claims(), iss: issuer }).setProtectedHeader({ alg: "ES256", kid: "one" });
    return `Bearer ${await jwt.sign(privateKey)}`;
  };
  const inTwoMinutes = () => vi.setSystemTime(Date.now() + 121_000);
  const ask = async (authenticate: Authenticate, bearer: string) => {
    try {
      return (await authenticate(bearer))?.id;
    } catch (error: unknown) {
      return faultDetail(error)?.metadata.why ?? faultDetail(error)?.reason;
    }
  };

  test("that was withdrawn is noticed after two minutes", async () => {
    const authenticate = authenticator({ issuer });
    const bearer = await header();
    expect(await ask(authenticate, bearer)).toBe("oidc/ada");
    keys = [];
    expect(await ask(authenticate, bearer)).toBe("oidc/ada");
    inTwoMinutes();
    expect(await ask(authenticate, bearer)).toBe("signature");
  });

  test("that cannot be fetched any more make the service not ready for new tokens", async () => {
    const authenticate = authenticator({ issuer });
    const bearer = await header();
    expect(await ask(authenticate, bearer)).toBe("oidc/ada");
    server.close();
    server.closeAllConnections();
    inTwoMinutes();
    expect(await ask(authenticate, bearer)).toBe(ErrorReason.NOT_READY);
  });
});

test("what is no JWT is left to others", async () => {
  for (const header of [undefined, "", "Bearer rv_0123456789ab_x", "Basic YTpi", `Bearer ${"a".repeat(20_000)}`])
    expect(await authenticator()(header)).toBeUndefined();
});

describe("claims", () => {
  test("are found in objects, and may be a single text", () => {
    const nested = parseRoleMapping("realm_access.roles", "ops=operator");
    expect(principalFromClaims({ sub: "a", realm_access: { roles: ["ops"] } }, nested).roles).toEqual([Role.OPERATOR]);
    expect(principalFromClaims({ sub: "a", groups: "everyone" }, mapping).roles).toEqual([Role.AUDITOR]);
    const dotted = parseRoleMapping("https://x.example/groups", "ops=operator");
    expect(principalFromClaims({ sub: "a", "https://x.example/groups": ["ops"] }, dotted).kind).toBe("operator");
  });

  test("give each role once, in the order of the groups", () => {
    const { roles, kind } = principalFromClaims({ sub: "a", groups: ["everyone", "admins", "everyone"] }, mapping);
    expect([roles, kind]).toEqual([[Role.AUDITOR, Role.OPERATOR], "auditor"]);
  });
});

describe("a role mapping", () => {
  test.each(["", "admins", "=operator", "admins=service", "admins=device", "admins=king"])("%j is refused", (text) => {
    expect(() => parseRoleMapping("groups", text)).toThrow(TypeError);
  });

  test("may hold equals signs in the value", () => {
    expect(parseRoleMapping("groups", "cn=admins=operator").roles.get("cn=admins")).toBe(Role.OPERATOR);
  });
});
