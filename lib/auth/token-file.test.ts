import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { Role } from "../../gen/ts/reeve/options/v1/access_pb.ts";
import { createTokenFile, type TokenFile } from "./token-file.ts";

let folder: string;
let path: string;
let now: number;
let tokens: TokenFile;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "tokens-"));
  path = join(folder, "tokens.json");
  now = Date.parse("2026-11-21T12:00:00Z");
  tokens = createTokenFile(path, { now: () => now });
});

afterEach(() => rmSync(folder, { recursive: true }));

test("knows no token while there is no file", () => {
  expect(tokens.authenticate("Bearer rv_000000000000_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA")).toBeUndefined();
  expect(tokens.listTokens()).toEqual([]);
});

test("an issued token gives its principal, whose kind is its first role", () => {
  const { token, entry } = tokens.issueToken({ name: "laptop agent", roles: [Role.AGENT, Role.AUDITOR] });
  expect(token).toMatch(/^rv_[0-9a-f]{12}_[A-Za-z0-9_-]{43}$/);
  expect(tokens.authenticate(`Bearer ${token}`)).toEqual({
    id: entry.id,
    kind: "agent",
    roles: [Role.AGENT, Role.AUDITOR],
    name: "laptop agent",
  });
});

test("keeps a hash and never the token, in a file only its owner may read", () => {
  const { token } = tokens.issueToken({ name: "op", roles: [Role.OPERATOR] });
  const text = readFileSync(path, "utf8");
  expect(text).not.toContain(token.split("_").slice(2).join("_"));
  expect(JSON.parse(text)).toMatchObject({
    tokens: [{ name: "op", roles: ["operator"], created: "2026-11-21T12:00:00.000Z" }],
  });
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(readdirSync(folder)).toEqual(["tokens.json"]);
});

test.each([
  ["no header", () => undefined],
  ["another scheme", (token: string) => `Basic ${token}`],
  ["the token alone", (token: string) => token],
  ["a changed last character", (token: string) => `Bearer ${token.slice(0, -1)}${token.endsWith("A") ? "B" : "A"}`],
  ["another token's id", (token: string) => `Bearer rv_000000000000${token.slice(15)}`],
  ["something after it", (token: string) => `Bearer ${token} `],
  ["two spaces", (token: string) => `Bearer  ${token}`],
  ["a very long header", (token: string) => `Bearer ${token}${"x".repeat(1_000_000)}`],
])("refuses %s", (_name, header) => {
  const { token } = tokens.issueToken({ name: "op", roles: [Role.OPERATOR] });
  expect(tokens.authenticate(header(token))).toBeUndefined();
});

test("refuses a token from the moment it expires", () => {
  const { token } = tokens.issueToken({ name: "op", roles: [Role.OPERATOR], expires: new Date(now + 5000) });
  now += 4999;
  expect(tokens.authenticate(`Bearer ${token}`)).toBeDefined();
  now += 1;
  expect(tokens.authenticate(`Bearer ${token}`)).toBeUndefined();
});

test("refuses a revoked token at once and keeps the others", () => {
  const gone = tokens.issueToken({ name: "a", roles: [Role.AGENT] });
  const kept = tokens.issueToken({ name: "b", roles: [Role.AGENT] });
  expect(tokens.revokeToken(gone.entry.id)).toBe(true);
  expect(tokens.revokeToken(gone.entry.id)).toBe(false);
  expect(tokens.authenticate(`Bearer ${gone.token}`)).toBeUndefined();
  expect(tokens.authenticate(`Bearer ${kept.token}`)).toBeDefined();
  expect(tokens.listTokens()).toEqual([kept.entry]);
});

test("sees a token of another program at once, and that it was revoked a second later at most", () => {
  const other = createTokenFile(path, { now: () => now });
  expect(tokens.authenticate(undefined)).toBeUndefined();
  const { token, entry } = other.issueToken({ name: "new", roles: [Role.SERVICE] });
  expect(tokens.authenticate(`Bearer ${token}`)).toMatchObject({ kind: "service" });
  other.revokeToken(entry.id);
  now += 1000;
  expect(tokens.authenticate(`Bearer ${token}`)).toBeUndefined();
});

test("a token that lists its tools has them, and a list that is damaged lets no token in", () => {
  const { token } = tokens.issueToken({ name: "a", roles: [Role.AGENT], tools: ["fs.read", "weather:now", "fs.read"] });
  expect(tokens.authenticate(`Bearer ${token}`)?.tools).toEqual(["fs.read", "weather:now"]);
  const all = tokens.issueToken({ name: "b", roles: [Role.AGENT] });
  expect(tokens.authenticate(`Bearer ${all.token}`)?.tools).toBeUndefined();
  for (const tools of [[], [""], ["fs.*"], ["a b"]])
    expect(() => tokens.issueToken({ name: "c", roles: [Role.AGENT], tools })).toThrow(TypeError);
  const text = readFileSync(path, "utf8");
  for (const damaged of ["[]", '"fs.read"', "[1]", "null"]) {
    writeFileSync(path, text.replace(/"tools": \[\s*"fs\.read",\s*"weather:now"\s*\]/, `"tools": ${damaged}`));
    now += 1000;
    expect(() => tokens.authenticate(`Bearer ${all.token}`)).toThrow();
  }
});

test("two programs that issue one after the other lose nothing", () => {
  const other = createTokenFile(path, { now: () => now });
  const first = tokens.issueToken({ name: "a", roles: [Role.AGENT] });
  const second = other.issueToken({ name: "b", roles: [Role.AGENT] });
  const third = tokens.issueToken({ name: "c", roles: [Role.AGENT] });
  expect(tokens.listTokens()).toEqual([first.entry, second.entry, third.entry]);
});

test("accepts no token while others may read the file, and says what to do", () => {
  const { token } = tokens.issueToken({ name: "a", roles: [Role.AGENT] });
  chmodSync(path, 0o604);
  now += 1000;
  expect(() => tokens.authenticate(`Bearer ${token}`)).toThrow(`chmod o-rwx ${path}`);
  chmodSync(path, 0o600);
  expect(tokens.authenticate(`Bearer ${token}`)).toBeDefined();
});

test("takes a file that its group may read, as one is mounted for a process without root", () => {
  const { token } = tokens.issueToken({ name: "a", roles: [Role.AGENT] });
  chmodSync(path, 0o440);
  now += 1000;
  expect(tokens.authenticate(`Bearer ${token}`)).toBeDefined();
});

test.each([
  "",
  "{",
  "[]",
  '{"tokens":[{}]}',
  '{"tokens":[{"id":"1","name":"","roles":["root"],"hash":"","created":""}]}',
  `{"tokens":[{"id":"000000000000","name":"","roles":["device"],"hash":"${"0".repeat(64)}","created":""}]}`,
])("accepts no token while the file is damaged: %s", (text) => {
  const { token } = tokens.issueToken({ name: "a", roles: [Role.AGENT] });
  writeFileSync(path, text);
  now += 1000;
  expect(() => tokens.authenticate(`Bearer ${token}`)).toThrow();
  expect(() => tokens.authenticate(`Bearer ${token}`)).toThrow();
});

test("gives no token without a known role", () => {
  expect(() => tokens.issueToken({ name: "a", roles: [] })).toThrow("at least one role");
  expect(() => tokens.issueToken({ name: "a", roles: [Role.UNSPECIFIED] })).toThrow("cannot be given");
  expect(() => tokens.issueToken({ name: "a", roles: [Role.AGENT, Role.DEVICE] })).toThrow("cannot be given");
});
