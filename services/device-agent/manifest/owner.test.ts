import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Mode } from "../../../gen/ts/reeve/device/v1/device_pb.ts";
import { readOwnerManifest } from "../../../lib/owner-manifest/document.ts";
import { signManifest } from "../../../lib/owner-manifest/envelope.ts";
import { generateSigningKey, type SigningKey } from "../../../lib/sign/keys.ts";
import { type Boundable, boundedBy, grantsCapability } from "./bounds.ts";
import { type OwnerOptions, openOwnerManifest, pinOwnerKeys } from "./owner.ts";

const key = generateSigningKey();
const next = generateSigningKey();
const NOW = Date.parse("2026-12-01T00:00:00Z");

let folder: string;
let file: string;
let options: OwnerOptions;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "reeve-owner-"));
  file = join(folder, "manifest.json");
  options = { file, keys: [key], trustFile: join(folder, "owner-trust.json"), device: "laptop", nowMs: NOW };
});
afterEach(() => rm(folder, { recursive: true }));

function text(version: number, more = ""): string {
  return `version: ${version}\nexpire_time: 2027-01-01\ndevices: [laptop]\nmode: user\n${more}`;
}

const write = (body: string, by: SigningKey = key) => writeFile(file, signManifest(by, body));
const base64 = ({ raw }: SigningKey) => Buffer.from(raw).toString("base64");

describe("openOwnerManifest", () => {
  it("opens what the owner signed, also at the next start", async () => {
    await write(text(3));
    expect((await openOwnerManifest(options))?.manifest.version).toBe(3n);
    expect((await openOwnerManifest({ ...options, keys: [] }))?.keyId).toBe(key.keyId);
  });

  it("is nothing for a device whose owner gave it neither keys nor a manifest", async () => {
    expect(await openOwnerManifest({ ...options, file: undefined, keys: [] })).toBeUndefined();
    await write(text(1));
    await expect(openOwnerManifest({ ...options, keys: [] })).rejects.toThrow("set device.manifest_keys");
  });

  it("refuses a version below the one that it has accepted, and another text with the same", async () => {
    await write(text(3));
    await openOwnerManifest(options);
    await write(text(2, "capabilities: ['*']\n"));
    await expect(openOwnerManifest(options)).rejects.toThrow("version: 2 is older than 3");
    await write(text(3, "capabilities: ['*']\n"));
    await expect(openOwnerManifest(options)).rejects.toThrow("version: 3 was accepted with another text");
    await write(text(4, "capabilities: ['*']\n"));
    expect((await openOwnerManifest(options))?.manifest.version).toBe(4n);
  });

  it("starts no more without a manifest once it was given the owner's keys", async () => {
    await pinOwnerKeys(options);
    await expect(openOwnerManifest({ ...options, file: undefined, keys: [] })).rejects.toThrow("set device.manifest");
    await expect(openOwnerManifest(options)).rejects.toThrow("ENOENT");
  });

  it.each([
    ["another key signed it", () => write(text(1), next), "no key that is trusted"],
    ["it has expired", () => write(text(1).replace("2027", "2026")), "expire_time: it has expired"],
    ["it is for another device", () => write(text(1).replace("laptop", "web1")), "devices: it is for web1"],
    ["it is not signed", () => writeFile(file, text(1)), "no signed manifest"],
    ["it has a field that this version does not know", () => write(text(1, "shel: no\n")), 'unknown key "shel"'],
  ])("refuses it where %s, and keeps nothing of it", async (_, put, message) => {
    await put();
    await pinOwnerKeys(options);
    const before = await readFile(options.trustFile, "utf8");
    await expect(openOwnerManifest(options)).rejects.toThrow(message);
    expect(await readFile(options.trustFile, "utf8")).toBe(before);
  });

  it("refuses one whose text was changed after it was signed", async () => {
    const envelope = JSON.parse(signManifest(key, text(1)));
    const payload = Buffer.from(text(1).replace("user", "all")).toString("base64");
    await writeFile(file, JSON.stringify({ ...envelope, payload }));
    await expect(openOwnerManifest(options)).rejects.toThrow("was changed after it was signed");
  });

  it("refuses a grant's bytes in place of a manifest", async () => {
    const envelope = JSON.parse(signManifest(key, text(1)));
    await writeFile(file, JSON.stringify({ ...envelope, payloadType: "application/vnd.reeve.grant.v1" }));
    await expect(openOwnerManifest(options)).rejects.toThrow("something else than an owner's manifest");
  });

  it("keeps to its keys, whatever the settings name later", async () => {
    await write(text(1));
    await openOwnerManifest(options);
    await write(text(2), next);
    await expect(openOwnerManifest({ ...options, keys: [next] })).rejects.toThrow(`${next.keyId} is not one`);
  });

  it("follows to the keys that an edition hands over to, and not back", async () => {
    await write(text(2, `next_keys: [${base64(next)}]\n`));
    await openOwnerManifest(options);
    expect((await openOwnerManifest(options))?.manifest.version).toBe(2n);
    await write(text(3));
    await expect(openOwnerManifest(options)).rejects.toThrow("was replaced by version 2");
    await write(text(3), next);
    expect((await openOwnerManifest(options))?.keyId).toBe(next.keyId);
  });

  it("does not start on a damaged file of what it trusts", async () => {
    await write(text(1));
    await openOwnerManifest(options);
    const kept = await readFile(options.trustFile, "utf8");
    await writeFile(options.trustFile, kept.slice(0, -20));
    await expect(openOwnerManifest(options)).rejects.toThrow("is damaged");
  });
});

describe("boundedBy", () => {
  const manifestOf = (more: string) => {
    const read = readOwnerManifest(text(1, more));
    if (!read.ok) throw new Error(read.problems[0]?.message);
    return read.manifest;
  };
  const settings = { mode: Mode.USER, readRoots: [] as string[], writeRoots: [] as string[] };

  it("fills in what was not stated", async () => {
    const manifest = manifestOf("read_roots: [/srv/a]\nwrite_roots: [/srv/b]\nhosts: ['*.example.com']\n");
    const all = new Set(["mode", "readRoots", "writeRoots", "hosts"] as const);
    expect(boundedBy({ ...settings, mode: Mode.ALL }, manifest, all)).toEqual({
      hosts: ["*.example.com"],
      mode: Mode.USER,
      readRoots: ["/srv/a"],
      writeRoots: ["/srv/b"],
    });
    expect(boundedBy(settings, manifest, new Set()).readRoots).toEqual([]);
  });

  it("refuses what asks for more, naming the setting", () => {
    const manifest = manifestOf("read_roots: [/srv/a]\nwrite_roots: [/srv/b]\n");
    const bound = (more: Partial<Boundable>) => () => boundedBy({ ...settings, ...more }, manifest, new Set());
    expect(bound({ mode: Mode.ALL })).toThrow("device.mode: it is all, and the owner's manifest allows user");
    expect(bound({ readRoots: ["/srv/aa"] })).toThrow("device.read_roots: /srv/aa is in no folder");
    expect(bound({ writeRoots: ["/srv/a"] })).toThrow("device.write_roots: /srv/a is in no folder");
    expect(bound({ readRoots: ["/srv/a/x", "/srv/b"] })).not.toThrow();
    expect(bound({ hosts: ["api.example.com"] })).toThrow("device.hosts: the owner's manifest does not grant");
    const some = manifestOf("hosts: ['*.example.com', 10.0.0.0/8]\n");
    expect(boundedBy({ ...settings, hosts: ["api.example.com", "10.0.0.0/8"] }, some, new Set()).hosts).toHaveLength(2);
    for (const host of ["example.com.evil", "evil-example.com", "10.0.0.1", "api.example.com:22"])
      expect(() => boundedBy({ ...settings, hosts: [host] }, some, new Set())).toThrow("device.hosts");
  });

  it("looks where a folder really is", async () => {
    await mkdir(join(folder, "granted"));
    await mkdir(join(folder, "outside"));
    await symlink(join(folder, "outside"), join(folder, "granted", "link"));
    const manifest = manifestOf(`read_roots: [${join(folder, "granted")}]\n`);
    const readRoots = [join(folder, "granted", "link")];
    expect(() => boundedBy({ ...settings, readRoots }, manifest, new Set())).toThrow("device.read_roots");
  });

  it.each([
    [["fs.read"], "fs.read", true],
    [["fs.read"], "fs.readx", false],
    [["fs.*"], "fs.read", true],
    [["fs.*"], "fsx.read", false],
    [["printer:*"], "printer:print", true],
    [["*"], "shell.eval", true],
    [[], "fs.read", false],
  ])("of %j, %s is granted: %s", (granted, capability, expected) => {
    expect(grantsCapability(granted, capability)).toBe(expected);
  });
});
