import { execFileSync } from "node:child_process";
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ConnectError } from "@connectrpc/connect";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { faultOf } from "../tools/testing/context.ts";
import { createRoots, type Roots } from "./roots.ts";

const READ = { access: "read", field: "path" } as const;
const WRITE = { access: "write", field: "path" } as const;

let base: string;
beforeEach(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), "reeve-roots-")));
  for (const folder of ["root/a/b", "ro", "outside", "root/state"]) mkdirSync(join(base, folder), { recursive: true });
  writeFileSync(join(base, "root/a/b/file"), "inside");
  writeFileSync(join(base, "outside/file"), "outside");
  writeFileSync(join(base, "ro/file"), "read only");
});
afterEach(() => rmSync(base, { recursive: true }));

function rootsOf(walk: "descriptors" | "paths"): Roots {
  return createRoots({
    read: [join(base, "ro")],
    write: [join(base, "root")],
    workDir: join(base, "root"),
    deny: [join(base, "root/state")],
    walk,
  });
}

function textOf(roots: Roots, path: string): string {
  using file = roots.openFile(path, READ);
  return readFileSync(file.fd, "utf8");
}

const walks = process.platform === "linux" ? (["descriptors", "paths"] as const) : (["paths"] as const);

describe.each(walks)("roots by %s", (walk) => {
  it("opens files and folders inside", () => {
    using roots = rootsOf(walk);
    expect(textOf(roots, join(base, "root/a/b/file"))).toBe("inside");
    expect(textOf(roots, `${base}/root/./a//b/../b/file`)).toBe("inside");
    expect(textOf(roots, join(base, "ro/file"))).toBe("read only");
    using folder = roots.openFolder(join(base, "root/a"), READ);
    expect(readdirSync(folder.at())).toEqual(["b"]);
    using root = roots.openFolder(join(base, "root"), READ);
    expect(readdirSync(root.at()).toSorted()).toEqual(["a", "state"]);
  });

  it.each(["outside/file", "root/../outside/file", "rootless", "", "root/../root2"])(
    "refuses %j outside",
    async (path) => {
      using roots = rootsOf(walk);
      const fault = await faultOf(() => roots.openFile(join(base, path), READ));
      expect(fault).toMatchObject({ reason: ErrorReason.PATH_OUTSIDE_ROOTS, metadata: { field: "path" } });
    },
  );

  it("refuses to write where only reading is granted", async () => {
    using roots = rootsOf(walk);
    const fault = await faultOf(() => roots.openParent(join(base, "ro/new"), WRITE));
    expect(fault).toMatchObject({ reason: ErrorReason.PATH_OUTSIDE_ROOTS, metadata: { path: join(base, "ro/new") } });
  });

  it("refuses a symbolic link at the end and in between, and says so", async () => {
    using roots = rootsOf(walk);
    symlinkSync(join(base, "outside"), join(base, "root/a/link"));
    symlinkSync("b", join(base, "root/a/inner"));
    symlinkSync(join(base, "outside/file"), join(base, "root/a/filelink"));
    for (const path of ["root/a/link/file", "root/a/inner/file", "root/a/filelink"]) {
      const fault = await faultOf(() => roots.openFile(join(base, path), READ));
      expect(fault.reason).toBe(ErrorReason.PATH_OUTSIDE_ROOTS);
      expect(fault.message).toContain("symbolic link");
    }
    expect((await faultOf(() => roots.openFolder(join(base, "root/a/link"), READ))).message).toContain("symbolic link");
    const made = await faultOf(() =>
      roots.openParent(join(base, "root/a/link/x/y"), { ...WRITE, createFolders: true }),
    );
    expect(made.message).toContain("symbolic link");
    expect(readdirSync(join(base, "outside"))).toEqual(["file"]);
  });

  it("looks at a symbolic link as itself", () => {
    using roots = rootsOf(walk);
    symlinkSync("/etc/passwd", join(base, "root/link"));
    using entry = roots.openEntry(join(base, "root/link"), READ);
    expect(entry.stats.isSymbolicLink()).toBe(true);
    expect(entry.linkTarget).toBe("/etc/passwd");
  });

  it("takes a root that is behind a link, by both its names", () => {
    symlinkSync(join(base, "root"), join(base, "alias"));
    const alias = join(base, "alias");
    using roots = createRoots({ read: [], write: [alias], workDir: alias, walk });
    expect(textOf(roots, join(alias, "a/b/file"))).toBe("inside");
    expect(textOf(roots, join(base, "root/a/b/file"))).toBe("inside");
    expect(roots.granted).toEqual([{ path: join(base, "root"), write: true }]);
  });

  it("refuses a pipe without waiting for it", async () => {
    using roots = rootsOf(walk);
    execFileSync("mkfifo", [join(base, "root/pipe")]);
    const fault = await faultOf(() => roots.openFile(join(base, "root/pipe"), READ));
    expect(fault).toMatchObject({ reason: ErrorReason.OS_REFUSED, metadata: { field: "path", errno: "ENOTSUP" } });
  });

  it("distinguishes what is missing, a folder, or no folder", async () => {
    using roots = rootsOf(walk);
    const open = (path: string) => faultOf(() => roots.openFile(join(base, path), READ));
    expect((await open("root/none")).reason).toBe(ErrorReason.TARGET_NOT_FOUND);
    expect((await open("root/none/x")).reason).toBe(ErrorReason.TARGET_NOT_FOUND);
    expect((await open("root/a")).metadata).toEqual({ field: "path", errno: "EISDIR" });
    expect((await open("root/a/b/file/x")).metadata).toEqual({ field: "path", errno: "ENOTDIR" });
    expect((await open(`root/${"n".repeat(300)}`)).metadata).toEqual({ field: "path", errno: "ENAMETOOLONG" });
  });

  it.each(["relative", "", "/a\0b"])("refuses %j, which is no absolute path", async (path) => {
    using roots = rootsOf(walk);
    expect((await faultOf(() => roots.openFile(path, READ))).reason).toBe(ErrorReason.INVALID_INPUT);
  });

  it("keeps the agent's own folder to itself, by any spelling", async () => {
    using roots = rootsOf(walk);
    writeFileSync(join(base, "root/state/key"), "k");
    for (const path of ["root/state/key", "root/state", "root/a/../state/key"]) {
      expect((await faultOf(() => roots.openEntry(join(base, path), READ))).reason).toBe(
        ErrorReason.PATH_OUTSIDE_ROOTS,
      );
    }
    using root = roots.openFolder(join(base, "root"), READ);
    expect((await faultOf(() => roots.openChild(root, "state", READ))).reason).toBe(ErrorReason.PATH_OUTSIDE_ROOTS);
  });

  it("lets secrets be looked at but not read or written", async () => {
    using roots = rootsOf(walk);
    mkdirSync(join(base, "root/.ssh"));
    writeFileSync(join(base, "root/.ssh/id_ed25519"), "k");
    const path = join(base, "root/.ssh/id_ed25519");
    expect((await faultOf(() => roots.openFile(path, READ))).message).toContain("secrets");
    expect((await faultOf(() => roots.openParent(path, WRITE))).message).toContain("secrets");
    expect((await faultOf(() => roots.openFolder(join(base, "root/.ssh"), READ))).message).toContain("secrets");
    using entry = roots.openEntry(path, READ);
    expect(entry.stats.size).toBe(1);
  });

  it("closes every descriptor", () => {
    const count = (): number => (process.platform === "linux" ? readdirSync("/proc/self/fd").length : 0);
    const before = count();
    {
      using roots = rootsOf(walk);
      for (const path of ["root/a/b/file", "root/none/x", "root/a", "outside/file", "root/.ssh/x"]) {
        try {
          textOf(roots, join(base, path));
        } catch {
          // Only the descriptors matter here.
        }
      }
    }
    expect(count()).toBe(before);
  });
});

it("names the root that cannot be used", () => {
  expect(() => createRoots({ read: ["/no/such/root"], write: [], workDir: "/no/such/root" })).toThrow("/no/such/root");
  expect(() => createRoots({ read: [base], write: [], workDir: "/etc" })).toThrow("/etc lies in no root");
});

describe("the reason of a refusal", () => {
  const messageOf = (roots: Roots, path: string, access: "read" | "write"): string => {
    try {
      roots.openParent(path, { access, field: "path" });
    } catch (error: unknown) {
      return (error as ConnectError).rawMessage;
    }
    throw new Error("not refused");
  };

  it("names what grants a folder, and says of secrets and of the agent's own folder that they are that", () => {
    const [root, state] = [join(base, "root"), join(base, "root/state")];
    using none = createRoots({ read: [], write: [], workDir: undefined });
    expect(messageOf(none, "/srv/a", "write")).toBe(
      "/srv/a lies outside the folders granted to write (none): the owner grants one with --write FOLDER where the device agent is started",
    );
    using some = createRoots({ read: [root], write: [], workDir: root, deny: [state] });
    expect(messageOf(some, "/srv/a", "read")).toContain(`granted to read (${root})`);
    expect(messageOf(some, join(root, ".env"), "read")).toMatch(/may hold secrets/);
    expect(messageOf(some, join(state, "a"), "read")).toMatch(/belongs to the device agent itself/);
    expect(messageOf(some, join(root, "none/a"), "read")).toMatch(/the folder above .* does not exist: createFolders/);
  });
});

describe.runIf(process.platform === "linux")("under a process that swaps links", () => {
  it("never reads or writes outside", async () => {
    const { spawn } = await import("node:child_process");
    const swap = join(base, "root/swap");
    mkdirSync(join(base, "root/real"));
    writeFileSync(join(base, "root/real/file"), "inside");
    writeFileSync(join(base, "root/leaf"), "inside");
    // Folder, link to outside, folder ... and the same for a file, as fast as one process can.
    const code = `
      const { renameSync, symlinkSync, unlinkSync, mkdirSync, rmSync, writeFileSync } = require("node:fs");
      const [base] = process.argv.slice(1);
      const quiet = (f) => { try { f(); } catch {} };
      mkdirSync(base + "/root/swap"); writeFileSync(base + "/root/swap/file", "inside");
      console.log("ready");
      for (;;) {
        quiet(() => renameSync(base + "/root/swap", base + "/root/kept"));
        quiet(() => symlinkSync(base + "/outside", base + "/root/swap"));
        quiet(() => unlinkSync(base + "/root/leaf"));
        quiet(() => symlinkSync(base + "/outside/file", base + "/root/leaf"));
        quiet(() => unlinkSync(base + "/root/swap"));
        quiet(() => renameSync(base + "/root/kept", base + "/root/swap"));
        quiet(() => unlinkSync(base + "/root/leaf"));
        quiet(() => writeFileSync(base + "/root/leaf", "inside"));
      }`;
    const attacker = spawn(process.execPath, ["-e", code, base], { stdio: ["ignore", "pipe", "inherit"] });
    try {
      await new Promise((resolve) => attacker.stdout.once("data", resolve));
      using roots = rootsOf("descriptors");
      const seen = { inside: 0, refused: 0, escaped: 0 };
      for (let i = 0; i < 2000; i++) {
        for (const path of [join(swap, "file"), join(base, "root/leaf")]) {
          try {
            seen[textOf(roots, path) === "outside" ? "escaped" : "inside"] += 1;
          } catch {
            seen.refused += 1;
          }
        }
        try {
          using place = roots.openParent(join(swap, "made"), WRITE);
          writeFileSync(place.folder.at("made"), "x");
        } catch {
          seen.refused += 1;
        }
      }
      expect(seen.escaped).toBe(0);
      expect(seen.inside).toBeGreaterThan(0);
      expect(seen.refused).toBeGreaterThan(0);
      expect(readdirSync(join(base, "outside"))).toEqual(["file"]);
    } finally {
      const gone = new Promise((resolve) => attacker.once("exit", resolve));
      attacker.kill("SIGKILL");
      await gone;
    }
  });
});
