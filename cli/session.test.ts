import { once } from "node:events";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { findTarget } from "./find-target.ts";
import { currentLogin } from "./login/current-token.ts";
import { type Login, readLogin, writeLogin } from "./login/login-file.ts";
import type { LoginTokens } from "./login/provider.ts";

const REGISTRY = "https://reeve.example:7400";
const NOW = 1_000_000;

let folder: string;
let provider: Server;
let asked: number;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "reeve-session-"));
  asked = 0;
  // Takes what it is asked, and never answers.
  provider = createServer(() => void asked++).listen(0, "127.0.0.1");
  await once(provider, "listening");
});
afterEach(async () => {
  provider.closeAllConnections();
  provider.close();
  await rm(folder, { recursive: true });
});

const context = (env: Record<string, string> = {}) => ({ env: { REEVE_DATA_DIR: folder, ...env }, now: () => NOW });
const own = { REEVE_REGISTRY_URL: "https://other.example", REEVE_TOKEN: "own" };

/** A login that is about to expire. */
async function keepLogin(): Promise<Login> {
  const issuer = `http://127.0.0.1:${(provider.address() as AddressInfo).port}`;
  const login: Login = {
    provider: { issuer, clientId: "reeve" },
    registry: REGISTRY,
    policy: undefined,
    idToken: "old",
    refreshToken: "refresh-1",
    expireMs: NOW,
  };
  await writeLogin(folder, login);
  return login;
}

const renewedBy = (refreshToken: string) => async (): Promise<LoginTokens> => ({
  idToken: `new of ${refreshToken}`,
  refreshToken,
  expireMs: NOW + 3_600_000,
});

describe("a command that is let in by something else", () => {
  test("does not ask the login's provider", async () => {
    await keepLogin();
    expect(await findTarget(context(own), {})).toMatchObject({ token: "own" });
    expect(await findTarget(context({ REEVE_TOKEN: "own" }), {})).toMatchObject({ registry: REGISTRY, token: "own" });
    expect(asked).toBe(0);
  });

  test.each([
    ["damaged", "{", 0o600],
    ["open to others", "{}", 0o644],
  ])("does not mind a login that is %s; one that may need it does", async (what, text, mode) => {
    const path = join(folder, "login.json");
    await writeFile(path, text);
    await chmod(path, mode);
    expect(await findTarget(context(own), {})).toMatchObject({ token: "own" });
    const needy = findTarget(context({ REEVE_REGISTRY_URL: REGISTRY }), {});
    await expect(needy).rejects.toThrow(what === "damaged" ? "is damaged" : "may be read by others");
  });
});

describe("a login that is about to expire", () => {
  test("is given as it is where the provider does not answer in time", async () => {
    const login = await keepLogin();
    expect(await currentLogin(context(), { withinMs: 200 })).toEqual(login);
    expect(asked).toBe(1);
  });

  test("is refreshed once for all who need it at the same time", async () => {
    await keepLogin();
    const used: string[] = [];
    const ask = async (_: unknown, refreshToken: string) => {
      used.push(refreshToken);
      return renewedBy("refresh-2")();
    };
    const logins = await Promise.all(Array.from({ length: 5 }, () => currentLogin(context(), { ask })));
    expect(used).toEqual(["refresh-1"]);
    expect(new Set(logins.map((login) => login?.idToken))).toEqual(new Set(["new of refresh-2"]));
    expect(await readLogin(folder)).toMatchObject({ refreshToken: "refresh-2" });
  });

  test("stays what it was, and unlocked, where its provider refuses", async () => {
    await keepLogin();
    const refuse = () => Promise.reject(new Error("invalid_grant"));
    expect(await currentLogin(context(), { ask: refuse })).toMatchObject({ idToken: "old" });
    expect(await currentLogin(context(), { ask: renewedBy("refresh-2") })).toMatchObject({
      idToken: "new of refresh-2",
    });
  });
});
