import { mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { Role } from "../../gen/ts/reeve/options/v1/access_pb.ts";
import { createTokenFile, type TokenFile } from "../../lib/auth/token-file.ts";
import { keptTokenPath, readKeptToken, writeProfile } from "../profile.ts";
import { issueFirstTokens } from "./first-tokens.ts";
import { prepareMachineTokens } from "./machine-tokens.ts";

let folder: string;
let tokens: TokenFile;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "reeve-tokens-"));
  tokens = createTokenFile(join(folder, "tokens.json"));
});
afterEach(() => rm(folder, { recursive: true }));

const rolesOf = (token = "") => tokens.authenticate(`Bearer ${token}`)?.roles;
const keep = (token: string) => writeProfile(folder, { registry: "r", policy: "p", token, stateDir: folder });

it("issues the first tokens once", () => {
  expect(issueFirstTokens(tokens)).toBeDefined();
  expect(issueFirstTokens(tokens)).toBeUndefined();
});

it("keeps no operator's token on the machine in the clear", async () => {
  const { issued, profile, isNew } = await prepareMachineTokens(tokens, folder);
  expect(rolesOf(issued?.operator)).toEqual([Role.OPERATOR]);
  expect(rolesOf(profile)).toEqual([Role.AUDITOR, Role.AGENT]);
  expect(rolesOf(await readKeptToken(folder, "chat"))).toEqual([Role.AGENT]);
  expect(rolesOf(await readKeptToken(folder, "runs"))).toEqual([Role.AGENT]);
  expect(rolesOf(await readKeptToken(folder, "untrusted-runs"))).toEqual([Role.TRIGGER]);
  for (const name of ["chat", "runs", "untrusted-runs"] as const) {
    expect((await stat(keptTokenPath(folder, name))).mode & 0o777).toBe(0o600);
  }
  expect(isNew).toBe(false);
});

it("keeps the machine's tokens while they are let in", async () => {
  const { profile } = await prepareMachineTokens(tokens, folder);
  await keep(profile);
  const chat = await readKeptToken(folder, "chat");
  expect(await prepareMachineTokens(tokens, folder)).toMatchObject({ issued: undefined, profile, isNew: false });
  expect(await readKeptToken(folder, "chat")).toBe(chat);
  expect(tokens.listTokens()).toHaveLength(6);
});

it("takes an operator's token out of a profile, and gives it back to be shown", async () => {
  const operator = issueFirstTokens(tokens)?.operator ?? "";
  await keep(operator);
  const { former, profile, isNew } = await prepareMachineTokens(tokens, folder);
  expect([former, isNew]).toEqual([operator, false]);
  expect(rolesOf(profile)).toEqual([Role.AUDITOR, Role.AGENT]);
});

it.each(["", "rv_aaaaaaaaaaaa_unknown"])("gives a machine that has only %j a new token", async (kept) => {
  issueFirstTokens(tokens);
  await keep(kept);
  const { profile, isNew, former } = await prepareMachineTokens(tokens, folder);
  expect([isNew, former]).toEqual([true, undefined]);
  expect(rolesOf(profile)).toEqual([Role.AUDITOR, Role.AGENT]);
});
