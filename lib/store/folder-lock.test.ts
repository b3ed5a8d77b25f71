import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterEach, beforeEach, expect, test } from "vitest";
import { eventually } from "../../testkit/eventually.ts";
import { nodeEnv } from "../../testkit/node-env.ts";
import { isRunning } from "../../testkit/programs.ts";
import { FolderInUse } from "./folder-in-use.ts";
import { type FolderLock, lockFolder } from "./folder-lock.ts";

const OWNER = { program: "reeve test", setting: "REEVE_TEST_DIR" };
const HOLDER = join(import.meta.dirname, "testdata", "folder-holder.ts");

let folder: string;
const locks: FolderLock[] = [];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "folder-lock-"));
});
afterEach(() => {
  for (const lock of locks.splice(0)) lock.release();
  rmSync(folder, { recursive: true });
});

function take(): FolderLock {
  const lock = lockFolder(folder, OWNER);
  locks.push(lock);
  return lock;
}

/** A process that has taken the folder. It prints the pid of a program that it has started. */
async function startHolder() {
  const child = spawn(process.execPath, [HOLDER, folder], { env: nodeEnv(), stdio: ["ignore", "pipe", "inherit"] });
  const [line] = (await once(createInterface({ input: child.stdout }), "line")) as [string];
  return { pid: child.pid ?? 0, program: Number(line), child };
}

test("a folder is one holder's, who is named with its address, until it is released", () => {
  const first = take();
  first.listensAt("http://127.0.0.1:1");
  expect(take).toThrow(`reeve test is already running at http://127.0.0.1:1 (pid ${process.pid}), and the folder`);
  first.release();
  first.release();
  expect(take).not.toThrow();
});

test("one who is refused takes nothing from the holder, however often it asks", () => {
  take();
  for (let i = 0; i < 3; i += 1) expect(take).toThrow(FolderInUse);
  expect(take).toThrow(FolderInUse);
});

test("another process is refused with the pid of the holder", async () => {
  const { child, pid } = await startHolder();
  expect(take).toThrow(`(pid ${pid})`);
  const gone = once(child, "exit");
  child.kill("SIGTERM");
  await gone;
});

test("a holder that was killed holds nothing, although a program that it started lives on", async () => {
  const { child, program } = await startHolder();
  const gone = once(child, "exit");
  child.kill("SIGKILL");
  await gone;
  try {
    expect(await isRunning(program)).toBe(true);
    // Its description of itself has no effect.
    expect(readdirSync(folder)).toContain("process.json");
    expect(take).not.toThrow();
  } finally {
    process.kill(program, "SIGKILL");
    await eventually(async () => expect(await isRunning(program)).toBe(false));
  }
});

test("a note of a pid that runs is no lock", () => {
  const note = { program: "reeve up", pid: process.pid, host: "h", since: "2026-01-01T00:00:00Z" };
  writeFileSync(join(folder, "process.json"), JSON.stringify(note));
  expect(take).not.toThrow();
});

test("a note that is damaged is left out of the message", () => {
  take();
  writeFileSync(join(folder, "process.json"), "{");
  expect(take).toThrow("another process is already running, and the folder");
});

test("its files are the owner's alone, whatever the umask", () => {
  const before = process.umask(0);
  try {
    take().listensAt("http://127.0.0.1:1");
  } finally {
    process.umask(before);
  }
  const modes = readdirSync(folder).map((name) => statSync(join(folder, name)).mode & 0o777);
  expect(modes).toEqual([0o600, 0o600]);
});
