import { createSecretKey, randomBytes } from "node:crypto";
import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { SealError } from "../../../lib/identity/seal.ts";
import { sealerWith } from "../../../lib/identity/sealer.ts";
import { maskOf } from "../../../lib/secrets/mask.ts";
import { openSecrets, type SecretStore } from "../../../lib/secrets/store.ts";
import { faultOf } from "../tools/testing/context.ts";
import { secretsOfCall } from "./call-secrets.ts";

const VALUE = 'a/"secret"+value\\of some length';
const HANDLE = ["$", "{secret:TOKEN}"].join("");

describe("the store", () => {
  const sealer = sealerWith(createSecretKey(randomBytes(32)));
  let folder: string;
  let store: SecretStore;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "reeve-secrets-"));
    store = openSecrets(join(folder, "secrets"), sealer);
  });
  afterEach(() => rm(folder, { recursive: true, force: true }));

  test("keeps a secret until it is deleted, and lists it without its value", async () => {
    expect([store.read("TOKEN"), await store.list(), await store.delete("TOKEN")]).toEqual([undefined, [], false]);
    await store.set("TOKEN", { value: "another value", hosts: ["b.example"] });
    await store.set("TOKEN", { value: VALUE, hosts: ["A.Example."] });
    expect(store.read("TOKEN")).toEqual({ value: VALUE, hosts: ["a.example"] });
    expect(await store.list()).toEqual([{ name: "TOKEN", hosts: ["a.example"] }]);
    expect(await store.delete("TOKEN")).toBe(true);
    expect(await store.list()).toEqual([]);
  });

  test("keeps it sealed, in its owner's sight only, and under its own name", async () => {
    await store.set("TOKEN", { value: VALUE, hosts: ["a.example"] });
    const file = join(folder, "secrets", "TOKEN");
    expect([(await stat(file)).mode & 0o777, (await stat(join(folder, "secrets"))).mode & 0o777]).toEqual([
      0o600, 0o700,
    ]);
    const sealed = await readFile(file);
    expect(sealed.includes(VALUE.slice(0, 8)) || sealed.includes("example")).toBe(false);
    await writeFile(join(folder, "secrets", "OTHER"), sealed);
    expect(() => store.read("OTHER")).toThrow(SealError);
  });

  test.each(["", "../device.key", "a/b", "1A", "A".repeat(65), "TOKEN\n"])("has no secret named %j", async (name) => {
    expect(() => store.read(name)).toThrow("is not the name of a secret");
    await expect(store.set(name, { value: VALUE, hosts: ["a.example"] })).rejects.toThrow("is not the name");
  });

  test.each(["short", "x".repeat(8193), "non-ascii \u00e9"])("takes no value such as %j", async (value) => {
    await expect(store.set("TOKEN", { value, hosts: ["a.example"] })).rejects.toThrow(/^the secret /);
  });
});

describe("the secrets of a call", () => {
  const use = { field: "headers", host: "a.example", isEncrypted: true };
  const secrets = () =>
    secretsOfCall({ read: (name) => (name === "TOKEN" ? { value: VALUE, hosts: ["a.example"] } : undefined) });

  test("are resolved where they are meant to go, and masked from then on", () => {
    const one = secrets();
    expect(one.resolve("none at all", use)).toBe("none at all");
    expect([one.isUsed, one.mask(VALUE)]).toEqual([false, VALUE]);
    expect(one.resolve(`Bearer ${HANDLE}`, use)).toBe(`Bearer ${VALUE}`);
    expect(one.maskOutput({ a: [`>${VALUE}<`, 1, null], [VALUE]: { b: VALUE } })).toEqual({
      a: [">[redacted]<", 1, null],
      "[redacted]": { b: "[redacted]" },
    });
  });

  test.each([
    ["another host", HANDLE, { ...use, host: "b.example" }],
    ["where others can read it", HANDLE, { ...use, isEncrypted: false }],
    ["a name that none has", HANDLE.replace("TOKEN", "OTHER"), use],
    ["what is no name", HANDLE.replace("TOKEN", "../device.key"), use],
  ])("are refused for %s", async (_, text, where) => {
    const one = secrets();
    const { reason, metadata, message } = await faultOf(() => one.resolve(text, where));
    expect([reason, metadata.field]).toEqual([ErrorReason.SECRET_REFUSED, "headers"]);
    expect(JSON.stringify(metadata) + message).not.toContain(VALUE);
    expect(one.isUsed).toBe(false);
  });
});

describe("masking", () => {
  const mask = maskOf([VALUE]);

  test.each([
    ["as it is", VALUE],
    ["in JSON", JSON.stringify({ a: VALUE })],
    ["percent-encoded", `?a=${encodeURIComponent(VALUE)}`],
    ...[0, 1, 2, 3].map((before) => [
      `in base64 after ${before} characters`,
      Buffer.from(`${"u".repeat(before)}${VALUE}!`).toString("base64"),
    ]),
    ["in base64 for URLs", Buffer.from(`u${VALUE}`).toString("base64url")],
  ])("finds a secret %s", (_, text = "") => {
    const masked = mask.text(text);
    expect(masked).toContain("[redacted]");
    const decoded = Buffer.from(masked.replaceAll("[redacted]", ""), "base64").toString("latin1");
    expect(`${masked}${decodeURIComponent(masked)}${decoded}`).not.toMatch(/a\/|secret|value|length/);
  });

  test("leaves out the beginning of one that the end of some bytes cuts", () => {
    const cut = (text: string) => mask.bytes(Buffer.from(text, "latin1")).toString("latin1");
    for (let length = 1; length < VALUE.length; length++) expect(cut(`x:${VALUE.slice(0, length)}`)).toBe("x:");
    expect(cut(`x:${VALUE}, y`)).toBe("x:[redacted], y");
    expect(cut("\x00\xff nothing of it")).toBe("\x00\xff nothing of it");
  });

  test("masks each line of a secret of several", () => {
    const key = maskOf(["-----BEGIN-----\nfirst line of it\nsecond line"]);
    expect(key.text("x first line of it y")).toBe("x [redacted] y");
  });
});
