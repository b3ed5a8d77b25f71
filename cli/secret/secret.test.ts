import { mkdir, mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createFakeContext, runInFake } from "../testing/fake-context.ts";
import { set } from "./secrets.ts";

const VALUE = "syt_0123456789abcdef";

let folder: string;
let state: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "reeve-secret-"));
  state = join(folder, "data", "device");
  await mkdir(state, { recursive: true, mode: 0o700 });
});
afterEach(() => rm(folder, { recursive: true }));

const reeve = (words: string[], input = "") =>
  runInFake(["secret", ...words], { env: { REEVE_DATA_DIR: join(folder, "data") }, input });
const listed = async () => (JSON.parse((await reeve(["list", "--json"])).stdout) as { secrets: unknown }).secrets;

test("a secret is read from standard input, listed by name and host, and deleted", async () => {
  const kept = await reeve(["set", "MATRIX", "--host", "Matrix.example.org", "--host", "b.example"], `${VALUE}\n`);
  expect(kept, kept.stderr).toMatchObject({ code: 0, stdout: "" });
  expect(await listed()).toEqual([{ name: "MATRIX", hosts: ["matrix.example.org", "b.example"] }]);
  const shown = await reeve(["list"]);
  expect(shown.stdout).toContain("MATRIX");
  expect(`${shown.stdout}${shown.stderr}${kept.stderr}`).not.toContain(VALUE);
  for (const name of await readdir(join(state, "secrets")))
    expect(await readFile(join(state, "secrets", name), "latin1")).not.toContain(VALUE);
  expect(await reeve(["delete", "MATRIX"])).toMatchObject({ code: 0 });
  expect(await listed()).toEqual([]);
  expect(await reeve(["delete", "MATRIX"])).toMatchObject({ code: 2, stderr: expect.stringContaining("no secret") });
});

test("on a terminal it is asked for", async () => {
  const context = createFakeContext({ env: { REEVE_DATA_DIR: join(folder, "data") }, terminal: true });
  const running = set("MATRIX", { host: ["matrix.example.org"] }, context);
  await context.typeAfter("MATRIX (it is not shown): ", `${VALUE}\n`);
  await running;
  expect(`${context.stdoutText()}${context.stderrText()}`).not.toContain(VALUE);
  expect(await listed()).toEqual([{ name: "MATRIX", hosts: ["matrix.example.org"] }]);
});

test.each([
  ["without a host", ["set", "A"], VALUE, "--host"],
  ["for hosts of a kind", ["set", "A", "--host", "*.example.org"], VALUE, "single hosts"],
  ["for a network", ["set", "A", "--host", "10.0.0.0/8"], VALUE, "single hosts"],
  ["for what is no host", ["set", "A", "--host", "https://a.example"], VALUE, "is no host"],
  ["under a name that none can have", ["set", "a-b", "--host", "a.example"], VALUE, "is not the name of a secret"],
  ["of nothing", ["set", "A", "--host", "a.example"], "\n", "is empty"],
  ["that is too short to be masked", ["set", "A", "--host", "a.example"], "1234567\n", "shorter than 8"],
])("no secret is kept %s", async (_, words, input, why) => {
  expect(await reeve(words, input)).toMatchObject({ code: 2, stderr: expect.stringContaining(why) });
  expect(await listed()).toEqual([]);
});

test("a machine without a device keeps none", async () => {
  await rm(state, { recursive: true });
  const { code, stderr } = await reeve(["set", "A", "--host", "a.example"], VALUE);
  expect([code, stderr]).toEqual([2, expect.stringContaining("this machine has no device yet")]);
});
