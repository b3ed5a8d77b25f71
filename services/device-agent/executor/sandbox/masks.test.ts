import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { findMasks } from "./masks.ts";

let root: string;
beforeEach(async () => {
  root = await realpath(await mkdtemp(join(tmpdir(), "reeve-masks-")));
});
afterEach(() => rm(root, { recursive: true }));

async function put(...paths: string[]): Promise<void> {
  for (const path of paths) {
    await mkdir(join(root, path, ".."), { recursive: true });
    await writeFile(join(root, path), "");
  }
}

const found = async ({
  level = "workspace",
  ...options
}: {
  hidden?: string[];
  limit?: number;
  level?: string;
} = {}) => {
  const masks = await findMasks({ roots: [root], hidden: [], ...options });
  const shown = masks.filter((mask) => mask.level === "workspace" || mask.level === level);
  return shown.map(({ path, kind }) => `${kind} ${path.slice(root.length + 1)}`).sort();
};

test("secrets are found by their names wherever they lie, whole folders as one", async () => {
  await put(
    "a.txt",
    ".env",
    ".env.example",
    "app/config/.env.production",
    "home/.ssh/id_ed25519",
    "home/.ssh/config",
    "keys/a.p12",
  );
  expect(await found()).toEqual([
    "file .env",
    "file app/config/.env.production",
    "file keys/a.p12",
    "folder home/.ssh",
  ]);
});

test("a link that has a secret's name hides what it leads to, inside the roots", async () => {
  await put("config/production.vars");
  await symlink("config/production.vars", join(root, ".env"));
  await symlink("/etc/hostname", join(root, ".netrc"));
  await symlink("nowhere", join(root, ".npmrc"));
  expect(await found()).toEqual(["file config/production.vars"]);
});

test("the agent's own folders are hidden, and those that lie elsewhere need not be", async () => {
  await put("state/device.key", "state/.env");
  expect(await found({ hidden: [join(root, "state"), "/etc", join(root, "gone")] })).toEqual(["folder state"]);
});

test("the nearest names are looked at first, and the search ends at its limit", async () => {
  await put(".env", ...Array.from({ length: 50 }, (_, at) => `deep/er/file${at}`), "deep/er/than/.env");
  expect(await found({ limit: 10 })).toEqual(["file .env"]);
  expect(await found()).toEqual(["file .env", "file deep/er/than/.env"]);
});

test("at read_only more files are hidden, and no folder or link for its name alone", async () => {
  await put("server.key", "src/tokens/colors.ts", "src/secrets.yml", "certificates/real.crt", ".env");
  await symlink(join(root, "certificates/real.crt"), join(root, "ca.pem"));
  expect(await found()).toEqual(["file .env"]);
  expect(await found({ level: "read_only" })).toEqual(["file .env", "file server.key", "file src/secrets.yml"]);
});
