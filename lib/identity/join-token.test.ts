import { expect, test } from "vitest";
import { generateSigningKey } from "../sign/keys.ts";
import { signJoin, verifyJoin } from "./join-proof.ts";
import { formatJoinToken, type JoinToken, parseJoinToken } from "./join-token.ts";

const TOKEN: JoinToken = {
  id: "enr-1",
  secret: "c2VjcmV0LXNlY3JldC1zZQ",
  urls: ["https://registry.example:7400"],
  ca: "ab".repeat(32),
  domain: "reeve",
  name: "web1",
  labels: { role: "web" },
};

test("a token comes back whole, also with white space around it", () => {
  expect(formatJoinToken(TOKEN)).toMatch(/^rvj1\.[A-Za-z0-9_-]+$/);
  expect(parseJoinToken(` ${formatJoinToken(TOKEN)}\n`)).toEqual(TOKEN);
});

test.each([
  ["nothing", ""],
  ["another kind of token", "rv_0123456789ab_secret"],
  ["a token without its end", formatJoinToken(TOKEN).slice(0, -20)],
  ["a token without an address", formatJoinToken({ ...TOKEN, urls: [] })],
  ["a token without an authority", formatJoinToken({ ...TOKEN, ca: "none" })],
])("%s is refused without showing any of it", (_, text) => {
  expect(() => parseJoinToken(text)).toThrow("this is no join token");
});

test("a proof is good for one key, one token and one request", () => {
  const key = generateSigningKey();
  const request = Buffer.from("request");
  const proof = signJoin(key, "enr-1", request);
  expect(verifyJoin(key, "enr-1", request, proof)).toBe(true);
  expect(verifyJoin(generateSigningKey(), "enr-1", request, proof)).toBe(false);
  expect(verifyJoin(key, "enr-2", request, proof)).toBe(false);
  expect(verifyJoin(key, "enr-1", Buffer.from("other"), proof)).toBe(false);
});
