import { chmod, mkdtemp, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { loadSealingKey, SealError, seal, unseal } from "./seal.ts";

let folder = "";
let path = "";

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "reeve-seal-"));
  path = join(folder, "sealing.key");
});

afterEach(() => rm(folder, { recursive: true }));

test("what was sealed opens with the same key and context", async () => {
  const key = await loadSealingKey(path);
  const sealed = seal(key, Buffer.from("a private key"), "authority/1");
  expect(Buffer.from(sealed).includes("a private key")).toBe(false);
  expect(Buffer.from(unseal(await loadSealingKey(path), sealed, "authority/1")).toString()).toBe("a private key");
});

test("a folder that is missing is made, for its owner only", async () => {
  await loadSealingKey(join(folder, "state", "sealing.key"));
  expect((await stat(join(folder, "state"))).mode & 0o777).toBe(0o700);
});

test("no nonce comes twice, and every one of many opens", async () => {
  const key = await loadSealingKey(path);
  const sealed = Array.from({ length: 3000 }, (_, at) => seal(key, Buffer.from(`text ${at}`), "c"));
  expect(new Set(sealed.map((one) => Buffer.from(one.subarray(9, 21)).toString("hex"))).size).toBe(3000);
  for (const [at, one] of sealed.entries()) expect(Buffer.from(unseal(key, one, "c")).toString()).toBe(`text ${at}`);
});

test("sealing the same twice gives different bytes", async () => {
  const key = await loadSealingKey(path);
  expect(seal(key, Buffer.from("x"), "c")).not.toEqual(seal(key, Buffer.from("x"), "c"));
});

test("another key, another context and changed bytes do not open it", async () => {
  const key = await loadSealingKey(path);
  const other = await loadSealingKey(join(folder, "other.key"));
  const sealed = Buffer.from(seal(key, Buffer.from("secret"), "authority/1"));
  expect(() => unseal(other, sealed, "authority/1")).toThrow(SealError);
  expect(() => unseal(key, sealed, "authority/2")).toThrow(SealError);
  for (let at = 0; at < sealed.length; at++) {
    const changed = Buffer.from(sealed);
    changed[at] = (changed[at] ?? 0) ^ 1;
    expect(() => unseal(key, changed, "authority/1")).toThrow(SealError);
  }
  expect(() => unseal(key, sealed.subarray(0, 20), "authority/1")).toThrow(SealError);
});

test("the file is for its owner's eyes, is made once, and is refused where others may read it", async () => {
  const [one, two] = await Promise.all([loadSealingKey(path), loadSealingKey(path)]);
  expect(one.equals(two)).toBe(true);
  expect((await stat(path)).mode & 0o777).toBe(0o600);
  await chmod(path, 0o644);
  await expect(loadSealingKey(path)).rejects.toThrow(path);
});

test("a file with anything but 32 bytes is refused without showing it", async () => {
  await writeFile(path, "c2hvcnQ=\n", { mode: 0o600 });
  await expect(loadSealingKey(path)).rejects.toThrow("32 bytes as base64 are needed");
  await expect(loadSealingKey(path)).rejects.not.toThrow("c2hvcnQ");
});
