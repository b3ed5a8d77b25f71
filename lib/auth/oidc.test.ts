import { generateKeyPair, SignJWT } from "jose";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Role } from "../../gen/ts/reeve/common/v1/access_pb.ts";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { type OidcProvider, startOidcProvider } from "../../test/helpers/oidc-provider.ts";
import { faultDetail } from "../fault/fault.ts";
import { authenticateByOidc, type OidcOptions } from "./oidc.ts";
import { parseRoleMapping, principalFromClaims } from "./oidc-claims.ts";

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
    expect(principal).toEqual({ id: "oidc/ada", kind: "operator", roles: [Role.OPERATOR], name: "ada@x" });
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

  test("signed by somebody else is refused", async () => {
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

  test("of somebody without a group that counts is refused", async () => {
    expect(await refusal(`Bearer ${await provider.sign(claims({ groups: ["guests"] }))}`)).toBe("claims");
  });

  test("lets nobody in while the provider cannot be reached", async () => {
    const authenticate = authenticator({ issuer: "http://127.0.0.1:1" });
    await expect(authenticate(`Bearer ${await provider.sign(claims())}`)).rejects.toThrow();
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
