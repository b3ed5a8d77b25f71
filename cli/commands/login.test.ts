import { mkdtemp, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { authenticateByOidc } from "../../lib/auth/oidc.ts";
import { parseRoleMapping } from "../../lib/auth/oidc-claims.ts";
import { type OidcProvider, startOidcProvider } from "../../testkit/oidc-provider.ts";
import { currentLogin } from "../login/current-token.ts";
import { type Login, readLogin, writeLogin } from "../login/login-file.ts";
import { runCli } from "../run-cli.ts";
import { resolveTarget } from "../target.ts";
import { createFakeContext, runInFake } from "../testing/fake-context.ts";

const REGISTRY = "https://reeve.example:7400";

let provider: OidcProvider;
let folder: string;
beforeAll(async () => {
  provider = await startOidcProvider();
  provider.logInAs("ada", ["admins"]);
});
afterAll(() => provider.close());
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "reeve-login-"));
});
afterEach(() => rm(folder, { recursive: true }));

async function logIn(clientId: string): Promise<Login> {
  const context = createFakeContext({ env: { REEVE_DATA_DIR: folder } });
  const words = ["login", "--registry", REGISTRY, "--issuer", provider.issuer, "--client-id", clientId];
  const running = runCli(words, context);
  await context.shown("stderr", "scope=");
  const url = /(http:\S+)\n/.exec(context.stderrText())?.[1] ?? "";
  await provider.browse(url);
  expect(await running, context.stderrText()).toBe(0);
  const login = await readLogin(folder);
  if (login === undefined) throw new Error("nothing was kept");
  return login;
}

function admit(login: Login) {
  const mapping = parseRoleMapping("groups", "admins=operator");
  return authenticateByOidc({ issuer: provider.issuer, audiences: [provider.clientId], mapping })(
    `Bearer ${login.idToken}`,
  );
}

describe("reeve login", () => {
  test("goes through the browser and keeps a token that lets its holder in", async () => {
    const login = await logIn(provider.clientId);
    expect(await admit(login)).toMatchObject({ id: "oidc/ada", kind: "operator" });
    expect((await stat(join(folder, "login.json"))).mode & 0o777).toBe(0o600);
  });

  test("as another client gets a token that is refused for its audience", async () => {
    const login = await logIn(provider.otherClientId);
    await expect(admit(login)).rejects.toThrow(/aud/);
  });

  test("is refreshed without a browser, shortly before its token expires", async () => {
    const login = await logIn(provider.clientId);
    expect(login.refreshToken).toBeDefined();
    const later = { env: { REEVE_DATA_DIR: folder }, now: () => login.expireMs - 1000 };
    const renewed = await currentLogin(later);
    expect(renewed?.refreshToken).not.toBe(login.refreshToken);
    expect(await readLogin(folder)).toEqual(renewed);
    expect(await admit(renewed as Login)).toMatchObject({ id: "oidc/ada" });
  });

  test("that cannot be refreshed is left as it is", async () => {
    const login = await logIn(provider.clientId);
    await writeLogin(folder, { ...login, refreshToken: "no such token" });
    const later = { env: { REEVE_DATA_DIR: folder }, now: () => login.expireMs + 1000 };
    expect((await currentLogin(later))?.idToken).toBe(login.idToken);
  });

  test.each([
    [["--issuer", "http://provider.example"], "https"],
    [["--issuer", "nonsense"], "no address"],
    [["--issuer", "https://x.example", "--port", "99999"], "--port"],
  ])("refuses %j", async (words, problem) => {
    const argv = ["login", "--registry", REGISTRY, "--client-id", "reeve", ...words];
    const { code, stderr } = await runInFake(argv, { env: { REEVE_DATA_DIR: folder } });
    expect([code, stderr]).toEqual([2, expect.stringContaining(problem)]);
  });

  test("is forgotten by logout", async () => {
    await logIn(provider.clientId);
    expect((await runInFake(["logout"], { env: { REEVE_DATA_DIR: folder } })).stderr).toContain("logged out");
    await expect(readFile(join(folder, "login.json"))).rejects.toThrow();
    expect((await runInFake(["logout"], { env: { REEVE_DATA_DIR: folder } })).stderr).toContain("there was no login");
  });
});

describe("the token of a login", () => {
  const login: Login = {
    provider: { issuer: "https://x.example", clientId: "reeve" },
    registry: REGISTRY,
    policy: "https://reeve.example:7401",
    idToken: "id-token",
    refreshToken: undefined,
    expireMs: 0,
  };

  test("is used at its own addresses", () => {
    expect(resolveTarget({}, {}, undefined, login)).toMatchObject({
      registry: REGISTRY,
      policy: login.policy,
      token: "id-token",
    });
  });

  test("goes nowhere else", () => {
    expect(() => resolveTarget({ registry: "https://evil.example" }, {}, undefined, login)).toThrow(/no token/);
    expect(() => resolveTarget({ policy: "https://evil.example" }, {}, undefined, login)).toThrow(/no token/);
  });

  test("yields to one that is named", () => {
    expect(resolveTarget({}, { REEVE_TOKEN: "mine" }, undefined, login).token).toBe("mine");
  });
});
