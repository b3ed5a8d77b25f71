import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { readConfig } from "../../lib/config/config.ts";
import { agentServiceEnvironment } from "./config.ts";
import { ownTokens } from "./own-tokens.ts";
import { withKeysFromFiles } from "./providers/provider-keys.ts";

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "reeve-tokens-"));
});
afterAll(() => rmSync(folder, { recursive: true }));

const logger = { error: () => undefined, warn: () => undefined };

function secretFile(name: string, text: string, mode = 0o600): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  chmodSync(path, mode);
  return path;
}

function tokensOf(env: Record<string, string>) {
  const needed = { REEVE_AGENT_STATE_DIR: folder, REEVE_TOKENS_FILE: join(folder, "tokens.json") };
  return ownTokens(readConfig(agentServiceEnvironment, { ...needed, ...env }), logger);
}

test("tokens are read from their files again each time", async () => {
  const path = secretFile("token", "one\n");
  const { token, triggerToken } = tokensOf({
    REEVE_AGENT_TOKEN_FILE: path,
    REEVE_TRIGGER_TOKEN_FILE: secretFile("trigger", "a trigger's"),
  });
  expect([await token(), await triggerToken()]).toEqual(["one", "a trigger's"]);
  writeFileSync(path, "two\n");
  expect(await token()).toBe("two");
});

test("tokens of variables are taken, and a trigger's is not needed", async () => {
  const { token, triggerToken } = tokensOf({ REEVE_AGENT_TOKEN: "one" });
  expect([await token(), await triggerToken()]).toEqual(["one", undefined]);
});

test("a service without a token, with two, with an empty file or with one open to others does not start", () => {
  expect(() => tokensOf({})).toThrow(/REEVE_AGENT_TOKEN.*REEVE_AGENT_TOKEN_FILE/);
  const both = { REEVE_AGENT_TOKEN: "secret-one", REEVE_AGENT_TOKEN_FILE: secretFile("own", "one") };
  expect(() => tokensOf(both)).toThrow(/REEVE_AGENT_TOKEN_FILE excludes REEVE_AGENT_TOKEN$/m);
  expect(() => tokensOf({ REEVE_AGENT_TOKEN_FILE: secretFile("empty", "\n") })).toThrow(/empty file/);
  const open = { REEVE_AGENT_TOKEN: "one", REEVE_TRIGGER_TOKEN_FILE: secretFile("open", "two", 0o644) };
  expect(() => tokensOf(open)).toThrow(/open to others/);
});

test("models' keys are read from files that are private, and only where no variable has one", () => {
  const ANTHROPIC_API_KEY_FILE = secretFile("key", "a key\n");
  expect(withKeysFromFiles({ ANTHROPIC_API_KEY_FILE, ANTHROPIC_API_KEY: "" }).ANTHROPIC_API_KEY).toBe("a key");
  expect(() => withKeysFromFiles({ ANTHROPIC_API_KEY_FILE, ANTHROPIC_API_KEY: "another" })).toThrow(/excludes/);
  expect(() => withKeysFromFiles({ OPENAI_API_KEY_FILE: secretFile("none", "") })).toThrow(/empty file/);
  expect(() => withKeysFromFiles({ OPENAI_API_KEY_FILE: secretFile("shown", "key", 0o644) })).toThrow(/open to others/);
});
