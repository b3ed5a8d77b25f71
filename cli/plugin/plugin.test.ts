import { mkdir, mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ACCEPTED_FILE } from "../../lib/plugin/accepted.ts";
import { runInFake } from "../testing/fake-context.ts";

let folder: string;
let hello: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "reeve-plugin-"));
  hello = join(folder, "plugins", "hello");
  await mkdir(join(folder, "plugins"));
});
afterEach(() => rm(folder, { recursive: true }));

const reeve = (...words: string[]) =>
  runInFake(["plugin", ...words], {
    env: { REEVE_DATA_DIR: join(folder, "data"), REEVE_DEVICE_PLUGINS: join(folder, "plugins") },
  });

const state = async () => {
  const { stdout } = await reeve("list", "--json");
  return (JSON.parse(stdout) as { plugins: { state: string }[] }).plugins.map((one) => one.state);
};

test("a new plugin is right as it is, and named after its folder", async () => {
  const made = await reeve("new", hello);
  expect(made, made.stderr).toMatchObject({ code: 0 });
  expect(made.stdout).toContain("hello:say");
  expect((await stat(join(hello, "say.py"))).mode & 0o777).toBe(0o755);
  const { code, stdout } = await reeve("check", hello);
  expect(code).toBe(0);
  expect(stdout).toMatch(/^hello 0\.1\.0, sha256 [0-9a-f]{64}\n {2}hello:say: Say hello to a person by name\.\n/);
  expect(stdout).toContain("runs    say.py\n");
  expect(stdout).toContain("level   read_only; 5 s at most\n");
});

test("no plugin is made over another, or under a name that none can have", async () => {
  await reeve("new", hello);
  const before = await readFile(join(hello, "plugin.json"), "utf8");
  const again = await reeve("new", hello);
  expect(again).toMatchObject({ code: 2, stderr: expect.stringContaining("exists already") as string });
  expect(await readFile(join(hello, "plugin.json"), "utf8")).toBe(before);
  expect(await reeve("new", join(folder, "No"))).toMatchObject({ code: 2 });
});

test("what is wrong is said with its line, and nothing is accepted", async () => {
  await reeve("new", hello);
  const file = join(hello, "plugin.json");
  await writeFile(file, (await readFile(file, "utf8")).replace('"timeout_seconds": 5', '"timeout_seconds": 0'));
  const wrong = "plugin.json, line 25: timeout_seconds must be a whole number from 1 to 3600";
  for (const verb of ["check", "accept"])
    expect(await reeve(verb, hello)).toMatchObject({ code: 2, stdout: "", stderr: `reeve: ${hello}: ${wrong}\n` });
  const { code, stdout } = await reeve("check", hello, "--json");
  expect([code, JSON.parse(stdout)]).toEqual([
    2,
    { ok: false, problems: [{ line: 25, message: "timeout_seconds must be a whole number from 1 to 3600" }] },
  ]);
  expect(await state()).toEqual(["wrong"]);
});

test("a plugin is accepted as it is, and after a change again", async () => {
  await reeve("new", hello);
  expect(await state()).toEqual(["new"]);
  const accepted = await reeve("accept", hello, "--json");
  expect(JSON.parse(accepted.stdout)).toMatchObject({ ok: true, name: "hello", changes: [] });
  expect((await stat(join(folder, "data", "device", ACCEPTED_FILE))).mode & 0o777).toBe(0o600);
  expect(await state()).toEqual(["accepted"]);
  const file = join(hello, "plugin.json");
  await writeFile(file, (await readFile(file, "utf8")).replace('"maxLength": 100', '"maxLength": 200'));
  expect(await state()).toEqual(["changed"]);
  expect((await reeve("accept", hello)).stdout).toContain("changed: what hello:say takes or says of itself\n");
  expect(await state()).toEqual(["accepted"]);
});

test("which device accepts is a question where there are two", async () => {
  await reeve("new", hello);
  for (const name of ["device", "device-agent"]) await mkdir(join(folder, "data", name), { recursive: true });
  expect(await reeve("accept", hello)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("--state-dir") as string,
  });
  const stateDir = join(folder, "data", "device-agent");
  expect(await reeve("accept", hello, "--state-dir", stateDir)).toMatchObject({ code: 0 });
  expect(await readFile(join(stateDir, ACCEPTED_FILE), "utf8")).toContain('"hello:say"');
});

test("a list needs a folder", async () => {
  const { code, stderr } = await runInFake(["plugin", "list"], { env: { REEVE_DATA_DIR: folder } });
  expect([code, stderr]).toEqual([2, expect.stringContaining("REEVE_DEVICE_PLUGINS") as string]);
});
