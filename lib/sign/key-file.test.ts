import { chmod, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { PrivateFileError } from "../files/private-file.ts";
import { createKeyFile, loadKeyFile, loadOrCreateKeyFile } from "./key-file.ts";
import { generateSigningKey, signingKeyToPem } from "./keys.ts";

let folder = "";
let path = "";

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "reeve-key-"));
  path = join(folder, "key.pem");
});

afterEach(() => rm(folder, { recursive: true }));

describe("createKeyFile", () => {
  it("writes a file that only its owner can read, and leaves nothing else behind", async () => {
    const key = generateSigningKey();
    expect(await createKeyFile(path, key)).toBe(true);
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    expect((await loadKeyFile(path)).keyId).toBe(key.keyId);
    expect(await readdir(folder)).toEqual(["key.pem"]);
  });

  it("never replaces a file", async () => {
    await writeFile(path, "here first");
    expect(await createKeyFile(path, generateSigningKey())).toBe(false);
    expect(await readFile(path, "utf8")).toBe("here first");
    expect(await readdir(folder)).toEqual(["key.pem"]);
  });

  it("fails as the file system does where the folder is missing", async () => {
    await expect(createKeyFile(join(folder, "none", "key.pem"), generateSigningKey())).rejects.toThrow("ENOENT");
  });
});

describe("loadKeyFile", () => {
  it("refuses a file that others may read or write", async () => {
    await createKeyFile(path, generateSigningKey());
    for (const mode of [0o604, 0o602, 0o644]) {
      await chmod(path, mode);
      await expect(loadKeyFile(path)).rejects.toThrow(`open to others (mode 0${mode.toString(8)})`);
    }
  });

  it("takes a file that its group may use: a volume's group gets that when it is mounted again", async () => {
    const key = generateSigningKey();
    await createKeyFile(path, key);
    for (const mode of [0o440, 0o660]) {
      await chmod(path, mode);
      expect((await loadKeyFile(path)).keyId).toBe(key.keyId);
    }
  });

  it("follows a link and looks at the mode of the file itself", async () => {
    await createKeyFile(path, generateSigningKey());
    await symlink(path, join(folder, "link.pem"));
    expect((await loadKeyFile(join(folder, "link.pem"))).keyId).toBe((await loadKeyFile(path)).keyId);
    await chmod(path, 0o644);
    await expect(loadKeyFile(join(folder, "link.pem"))).rejects.toThrow(PrivateFileError);
  });

  it("says what is wrong with a missing, damaged or huge file, without showing its content", async () => {
    await expect(loadKeyFile(path)).rejects.toThrow("cannot be opened: ENOENT");
    const half = signingKeyToPem(generateSigningKey()).slice(0, 70);
    for (const content of ["", "secret", half, "s".repeat(20_000)]) {
      await writeFile(path, content, { mode: 0o600 });
      const error = await loadKeyFile(path).catch((e: unknown) => e);
      expect(error).toBeInstanceOf(PrivateFileError);
      if (content) expect(String(error)).not.toContain(content.slice(0, 6));
    }
  });
});

describe("loadOrCreateKeyFile", () => {
  it("makes a key once and finds it again", async () => {
    const first = await loadOrCreateKeyFile(path);
    const second = await loadOrCreateKeyFile(path);
    expect([first.created, second.created]).toEqual([true, false]);
    expect(second.key.keyId).toBe(first.key.keyId);
  });

  it("gives every racing starter the same key", async () => {
    const starts = await Promise.all(Array.from({ length: 8 }, () => loadOrCreateKeyFile(path)));
    expect(new Set(starts.map(({ key }) => key.keyId)).size).toBe(1);
    expect(starts.filter(({ created }) => created).length).toBe(1);
  });

  it("does not replace a damaged key", async () => {
    await writeFile(path, "damaged", { mode: 0o600 });
    await expect(loadOrCreateKeyFile(path)).rejects.toThrow(PrivateFileError);
    expect(await readFile(path, "utf8")).toBe("damaged");
  });
});
