import { chmod, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Ajv2020 } from "ajv/dist/2020.js";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { parse } from "yaml";
import schema from "../../gen/settings/config.schema.json" with { type: "json" };
import { readConfig } from "../../lib/config/config.ts";
import { upEnvironment, withUpFlags } from "../stack/up-settings.ts";
import { createFakeContext, runInFake } from "../testing/fake-context.ts";
import { fileKeys } from "./config-file.ts";
import { withConfig } from "./load-config.ts";
import { withOwnFilesDenied } from "./own-files.ts";

let home: string;
let path: string;
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), "reeve-config-"));
  path = join(home, ".config", "reeve", "config.yaml");
  await mkdir(join(path, ".."), { recursive: true });
});
afterEach(() => rm(home, { recursive: true }));

const write = (text: string) => writeFile(path, text, { mode: 0o600 });
const env = (more: Record<string, string> = {}) => ({ HOME: home, ...more });

const FILE = `log_level: warn
device:
  mode: user
  read_roots: [~/notes]
  labels: { role: desk }
registry:
  port: 7500
`;

describe("reeve config", () => {
  it("shows each value with its source", async () => {
    await write(FILE);
    const { stdout, code } = await runInFake(["config", "show", "--json"], {
      env: env({ REEVE_DEVICE_MODE: "sudo", REEVE_TOKEN: "rv_x" }),
    });
    expect(code).toBe(0);
    const { settings, file } = JSON.parse(stdout);
    const shown = settings.map((one: Record<string, string>) => [one.setting, one.value, one.source]);
    expect(file).toBe(path);
    expect(shown).toEqual(
      [
        ["log_level", "warn", `${path}:1`],
        ["token", "[secret]", "environment REEVE_TOKEN"],
        ["device.mode", "sudo", "environment REEVE_DEVICE_MODE"],
        ["device.labels", "role=desk", `${path}:5`],
        ["device.read_roots", join(home, "notes"), `${path}:4`],
        ["registry.port", "7500", `${path}:7`],
      ].sort((a, b) => order(a[0]) - order(b[0])),
    );
    expect(stdout).not.toContain("rv_x");
  });

  it("shows defaults too where asked", async () => {
    const { stdout } = await runInFake(["config", "show", "--all"], { env: env() });
    expect(stdout).toMatch(/device\.max_running +64 +default/);
  });

  it("names each problem of a file with its line, and nothing runs with it", async () => {
    await write("device:\n  porrt: 1\n  mode: root\n");
    const checked = await runInFake(["config", "check"], { env: env() });
    expect(checked.code).toBe(2);
    expect(checked.stdout.split("\n").slice(0, 2)).toEqual([
      `${path}:2: device: unknown key "porrt"; did you mean "port"?`,
      `${path}:3: device.mode must be one of user, sudo, all, not "root"`,
    ]);
    const ran = await runInFake(["tool", "list"], { env: env() });
    expect(ran.code).toBe(2);
    expect(ran.stderr).toContain(`${path}:2`);
    for (const words of [["--version"], ["help", "up"], ["up", "--help"]])
      expect((await runInFake(words, { env: env() })).code).toBe(0);
  });

  it("checks a file that is named, and says that there is none", async () => {
    const other = join(home, "other.yaml");
    await writeFile(other, FILE, { mode: 0o600 });
    expect((await runInFake(["config", "check", other], { env: env() })).stdout).toBe(`${other}: valid, 5 settings\n`);
    expect((await runInFake(["config", "check"], { env: env() })).stderr).toContain("there is no configuration file");
    expect((await runInFake(["config", "check", join(home, "none")], { env: env() })).code).toBe(2);
  });

  it("refuses a file that others could change", async () => {
    await write(FILE);
    await chmod(path, 0o666);
    const { code, stderr } = await runInFake(["config", "show"], { env: env() });
    expect([code, stderr]).toEqual([2, expect.stringContaining("may be changed by others")]);
  });

  it("prints a schema that takes what the reader takes", async () => {
    const { stdout } = await runInFake(["config", "schema"], { env: env() });
    expect(JSON.parse(stdout)).toEqual(schema);
    const valid = new Ajv2020({ strict: false }).compile(schema);
    expect([valid(parse(FILE)), valid({ device: { porrt: 1 } }), valid({ token: "x" })]).toEqual([true, false, false]);
  });
});

function order(name: string | undefined): number {
  return fileKeys.findIndex(({ at }) => at === name);
}

describe("what runs", () => {
  it("reads flags before the environment, the environment before the file, the file before the default", async () => {
    await write(FILE);
    const { env: read } = await withConfig(["up"], createFakeContext({ env: env({ REEVE_LOG_LEVEL: "error" }) }));
    const settings = readConfig(upEnvironment, withUpFlags({ read: [], write: [], port: "0", mode: "sudo" }, read));
    expect(settings).toMatchObject({
      port: 0,
      mode: "sudo",
      logLevel: "error",
      readRoots: join(home, "notes"),
      maxRunning: 64,
    });
  });

  it("reads the file that --config names, and leaves a tool's own --config alone", async () => {
    const other = join(home, "other.yaml");
    await writeFile(other, "registry: { port: 7600 }", { mode: 0o600 });
    const context = createFakeContext({ env: env() });
    expect((await withConfig(["up", "--config", other], context)).configFile?.path).toBe(other);
    expect((await withConfig(["serve", "device", `--config=${other}`], context)).env.REEVE_REGISTRY_PORT).toBe("7600");
    expect((await withConfig(["call", "this", "x", "--config", other], context)).configFile).toBeUndefined();
  });

  it("keeps the file, and the place of one, from tools", async () => {
    const other = join(home, "other.yaml");
    await writeFile(other, "device: { denied: [/srv/keys], manifest: m.json }", { mode: 0o600 });
    const context = await withConfig(["up", "--config", other], createFakeContext({ env: env() }));
    expect(withOwnFilesDenied(context).REEVE_DEVICE_DENIED?.split(":")).toEqual([
      "/srv/keys",
      join(path, ".."),
      other,
      join(home, "m.json"),
    ]);
  });
});
