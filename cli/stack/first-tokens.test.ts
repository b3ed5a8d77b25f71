import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { Role } from "../../gen/ts/reeve/common/v1/access_pb.ts";
import { createTokenFile, type TokenFile } from "../../lib/auth/token-file.ts";
import { issueFirstTokens, machineToken } from "./first-tokens.ts";

let folder: string;
let tokens: TokenFile;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "reeve-tokens-"));
  tokens = createTokenFile(join(folder, "tokens.json"));
});
afterEach(() => rm(folder, { recursive: true }));

it("issues the first tokens once", () => {
  expect(issueFirstTokens(tokens)).toBeDefined();
  expect(issueFirstTokens(tokens)).toBeUndefined();
});

it("keeps the machine's token while it is let in", () => {
  const { operator = "" } = issueFirstTokens(tokens) ?? {};
  expect(machineToken(tokens, operator)).toEqual({ token: operator, isNew: false });
  expect(tokens.listTokens()).toHaveLength(2);
});

it.each([undefined, "", "rv_aaaaaaaaaaaa_unknown"])("gives a machine that has only %j a new operator's", (kept) => {
  issueFirstTokens(tokens);
  const { token, isNew } = machineToken(tokens, kept);
  expect(isNew).toBe(true);
  expect(tokens.authenticate(`Bearer ${token}`)).toMatchObject({ name: "owner", roles: [Role.OPERATOR] });
});
