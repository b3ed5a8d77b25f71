import { chmod, mkdtemp, readdir, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { UsageError } from "./errors/usage-error.ts";
import { dataDir, type Profile, profilePath, readProfile, tokensPath, writeProfile } from "./profile.ts";

const profile: Profile = {
  registry: "http://127.0.0.1:1",
  policy: "http://127.0.0.1:2",
  token: "rv_x",
  stateDir: "/s",
};
let folder: string;

beforeEach(async () => {
  folder = join(await mkdtemp(join(tmpdir(), "reeve-profile-")), "data");
});
afterEach(() => rm(join(folder, ".."), { recursive: true, force: true }));

describe("the profile", () => {
  it("comes back as it was written, and nothing is left beside it", async () => {
    await writeProfile(folder, profile);
    await writeProfile(folder, { ...profile, token: "rv_y" });
    expect(await readProfile(folder)).toEqual({ ...profile, token: "rv_y" });
    expect(await readdir(folder)).toEqual(["profile.json"]);
  });

  it("may name a file of authorities", async () => {
    const more = { ...profile, caFile: "/ca.pem", registrySocket: "/r.sock", policySocket: "/p.sock" };
    await writeProfile(folder, more);
    expect(await readProfile(folder)).toEqual(more);
  });

  it("is for its owner only, whatever the umask", async () => {
    for (const umask of [0o000, 0o777]) {
      const before = process.umask(umask);
      try {
        await writeProfile(folder, profile).catch(() => undefined);
      } finally {
        process.umask(before);
      }
      expect((await stat(profilePath(folder))).mode & 0o777).toBe(0o600);
    }
    expect((await stat(folder)).mode & 0o777).toBe(0o700);
  });

  it("that others may read is refused, with what to do", async () => {
    await writeProfile(folder, profile);
    await chmod(profilePath(folder), 0o644);
    const refused = await readProfile(folder).catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(UsageError);
    expect((refused as UsageError).hints).toEqual([`make it private: chmod 600 ${profilePath(folder)}`]);
  });

  it.each(["", "{", "[]", "null", '{"registry":"x"}', '{"registry":1,"policy":"","token":""}'])(
    "of %j is refused",
    async (text) => {
      await writeProfile(folder, profile);
      await writeFile(profilePath(folder), text);
      await expect(readProfile(folder)).rejects.toThrow("is not a profile");
    },
  );

  it("that is not there is none", async () => {
    expect(await readProfile(folder)).toBeUndefined();
  });
});

describe("the data folder", () => {
  it.each([
    [{ REEVE_DATA_DIR: "/d", XDG_DATA_HOME: "/x", HOME: "/h" }, "/d"],
    [{ XDG_DATA_HOME: "/x", HOME: "/h" }, "/x/reeve"],
    [{ XDG_DATA_HOME: "relative", HOME: "/h" }, "/h/.local/share/reeve"],
    [{ REEVE_DATA_DIR: "", HOME: "/h" }, "/h/.local/share/reeve"],
  ])("of %j is %s", (env, path) => {
    expect(dataDir(env)).toBe(path);
  });

  it("holds the tokens, unless they have a place of their own", () => {
    expect(tokensPath({ REEVE_DATA_DIR: "/d" })).toBe("/d/tokens.json");
    expect(tokensPath({ REEVE_DATA_DIR: "/d", REEVE_TOKENS_FILE: "/t" })).toBe("/t");
  });
});
