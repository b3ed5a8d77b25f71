import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { checkManifest } from "../doctor/manifest-check.ts";
import { runCli } from "../run-cli.ts";
import { createFakeContext, runInFake } from "../testing/fake-context.ts";
import { edit } from "./edit.ts";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "reeve-manifest-"));
});
afterEach(() => rm(folder, { recursive: true }));

const at = (name: string) => join(folder, name);
const env = (more: Record<string, string> = {}) => ({ HOME: folder, REEVE_DATA_DIR: at("data"), ...more });
const reeve = (...argv: string[]) => runInFake(argv, { env: env() });

function text(version: number, year = new Date().getUTCFullYear() + 1): string {
  return `# of the owner\nversion: ${version}\nexpire_time: ${year}-01-02\ndevices: [laptop]\nmode: user\n`;
}

async function signed(version = 1): Promise<string> {
  await writeFile(at("m.yaml"), text(version));
  const { code, stderr } = await reeve(
    "manifest",
    "sign",
    at("m.yaml"),
    "--out",
    at("m.json"),
    "--key",
    at("owner.pem"),
  );
  expect([code, stderr]).toEqual([0, expect.stringContaining(`version ${version}`)]);
  return at("m.json");
}

describe("reeve manifest", () => {
  it("signs a text exactly as it is, shows it, and verifies it by the key that it prints", async () => {
    const file = await signed();
    const shown = await reeve("manifest", "show", file);
    expect(shown.stdout).toBe(text(1));
    const { stdout: publicKey } = await reeve("manifest", "key", "--key", at("owner.pem"));
    const verified = await reeve(
      "manifest",
      "verify",
      file,
      "--public-key",
      publicKey.trim(),
      "--device",
      "laptop",
      "--json",
    );
    expect(verified.code).toBe(0);
    expect(JSON.parse(verified.stdout)).toMatchObject({ ok: true, version: 1, devices: ["laptop"] });
    expect(JSON.parse((await reeve("manifest", "show", file, "--json")).stdout).manifest).toMatchObject({
      version: 1,
      mode: "user",
      sandbox: "none",
      capabilities: [],
    });
  });

  it("is DSSE, which others can verify", async () => {
    const { payloadType, payload, signatures } = JSON.parse(await readFile(await signed(), "utf8"));
    expect(payloadType).toBe("application/vnd.reeve.owner-manifest.v1+yaml");
    expect(Buffer.from(payload, "base64").toString()).toBe(text(1));
    expect(signatures).toEqual([{ keyid: expect.stringMatching(/^[0-9a-f]{16}$/), sig: expect.any(String) }]);
  });

  it("says what does not verify, with exit code 10", async () => {
    const file = await signed();
    const other = (await reeve("manifest", "key", "--key", at("other.pem"))).stdout.trim();
    const unknown = await reeve("manifest", "verify", file, "--public-key", other);
    expect([unknown.code, unknown.stdout]).toEqual([10, expect.stringContaining("no key that is trusted")]);
    const device = await reeve("manifest", "verify", file, "--key", at("owner.pem"), "--device", "web1", "--json");
    expect([device.code, JSON.parse(device.stdout).problem]).toEqual([
      10,
      expect.stringContaining("devices: it is for laptop"),
    ]);
  });

  it("names the line and the field of what is wrong, and signs nothing", async () => {
    await writeFile(at("m.yaml"), `${text(1)}capabilites: []\n`);
    const { code, stderr } = await reeve("manifest", "sign", at("m.yaml"), "--out", at("m.json"), "--key", at("k.pem"));
    expect([code, stderr]).toEqual([
      2,
      expect.stringContaining(`${at("m.yaml")}:6: the manifest: unknown key "capabilites"`),
    ]);
    await writeFile(at("m.yaml"), text(1, 2020));
    expect(
      (await reeve("manifest", "sign", at("m.yaml"), "--out", at("m.json"), "--key", at("k.pem"))).stderr,
    ).toContain("expire_time");
    await expect(readFile(at("m.json"))).rejects.toThrow("ENOENT");
  });

  it("keeps the owner's key under a passphrase, and never asks without a terminal", async () => {
    expect((await reeve("manifest", "key")).code).toBe(2);
    const passphrase = "four words are good";
    const making = createFakeContext({ env: env(), terminal: true });
    const made = runCli(["manifest", "key"], making);
    await making.typeAfter("New passphrase: ", `${passphrase}\n`);
    await making.typeAfter("Once more: ", `${passphrase}\n`);
    expect(await made).toBe(0);
    const publicKey = making.stdoutText().trim();
    expect(await readFile(at("data/owner.sealed"), "utf8")).not.toContain("PRIVATE");
    await writeFile(at("m.yaml"), text(1));
    const signing = createFakeContext({ env: env(), terminal: true });
    const done = runCli(["manifest", "sign", at("m.yaml"), "--out", at("m.json")], signing);
    await signing.typeAfter("Passphrase of the owner's key: ", `${passphrase}\n`);
    expect(await done).toBe(0);
    expect((await reeve("manifest", "verify", at("m.json"))).code).toBe(0);
    expect((await reeve("manifest", "key")).stdout.trim()).toBe(publicKey);
  });

  it("edits: the next version, signed again; what is not valid is kept and not signed", async () => {
    const file = await signed(4);
    const context = createFakeContext({ env: env() });
    const change = (from: string, to: string) => async (path: string) => {
      const draft = await readFile(path, "utf8");
      expect(draft).toContain("version: 5");
      await writeFile(path, draft.replace(from, to));
    };
    const flags = { key: at("owner.pem") };
    await expect(edit(file, flags, context, change("mode: user", "mode: root"))).rejects.toThrow("mode must be one of");
    expect((await reeve("manifest", "show", file)).stdout).toBe(text(4));
    await edit(file, flags, context, change("mode: user", "mode: all"));
    expect((await reeve("manifest", "show", file)).stdout).toBe(text(5).replace("user", "all"));
    await edit(file, flags, context, async () => undefined);
    expect(context.stderrText()).toContain("nothing was changed");
  });

  it("is looked at by doctor, which warns before it ends", async () => {
    const file = await signed();
    const publicKey = (await reeve("manifest", "key", "--key", at("owner.pem"))).stdout.trim();
    const doctor = async (keys: string, nowMs = Date.now()) => {
      const set = env({ REEVE_DEVICE_MANIFEST: file, REEVE_DEVICE_MANIFEST_KEYS: keys });
      return await checkManifest({ ...createFakeContext({ env: set }), now: () => nowMs });
    };
    const end = Date.parse(`${new Date().getUTCFullYear() + 1}-01-02`);
    expect(await doctor(publicKey, end - 15 * 86_400_000)).toMatchObject([{ check: "manifest", state: "ok" }]);
    expect(await doctor(publicKey, end - 3 * 86_400_000)).toMatchObject([
      {
        state: "note",
        text: expect.stringContaining("in 3 days"),
        todo: expect.stringContaining("reeve manifest edit"),
      },
    ]);
    expect(await doctor(publicKey, end)).toMatchObject([
      { state: "broken", text: expect.stringContaining("expire_time") },
    ]);
    const other = (await reeve("manifest", "key", "--key", at("other.pem"))).stdout.trim();
    expect(await doctor(other)).toMatchObject([
      { state: "broken", text: expect.stringContaining("no key that is trusted") },
    ]);
  });

  it("begins with what is set where there is no manifest yet", async () => {
    const context = createFakeContext({
      env: env({ REEVE_DEVICE_NAME: "desk", REEVE_DEVICE_READ_ROOTS: "/srv:/data" }),
    });
    await edit(at("new.json"), { key: at("owner.pem") }, context, async () => undefined);
    const shown = JSON.parse((await reeve("manifest", "show", at("new.json"), "--json")).stdout);
    expect(shown.manifest).toMatchObject({ version: 1, devices: ["desk"], read_roots: ["/srv", "/data"] });
  });
});
