import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Ajv2020 } from "ajv/dist/2020.js";
import { afterEach, beforeEach, expect, it } from "vitest";
import { parse } from "yaml";
import { repositoryRoot } from "../../scripts/repository-root.ts";
import { ExitCode } from "../exit-codes.ts";
import { runInFake } from "../testing/fake-context.ts";

let home: string;
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), "reeve-agents-"));
  await mkdir(join(home, "agents"));
});
afterEach(() => rm(home, { recursive: true }));

const write = (name: string, text: string) => writeFile(join(home, "agents", name), text, { mode: 0o600 });
const agent = (...words: string[]) =>
  runInFake(["agent", ...words], { env: { HOME: home, REEVE_DATA_DIR: home, WSL_URL: "http://10.0.0.7:7402" } });

const MESH = "model: ollama/qwen3:8b\ndevice_mesh: { enabled: true, host: wsl, device_agent_url_env: WSL_URL }\n";

it("lists the agents of the data folder, and every problem of the other files", async () => {
  await write("wsl.yaml", MESH);
  await write("bad.yaml", "device_mesh:\n  enabld: true\n");
  const { stdout, stderr, code } = await agent("list");
  expect(stdout).toMatch(/wsl +ollama\/qwen3:8b +wsl +all/);
  expect(stderr).toContain(
    `${join(home, "agents", "bad.yaml")}:2: device_mesh: unknown key "enabld"; did you mean "enabled"?`,
  );
  expect(code).toBe(ExitCode.USAGE);
  const listed = JSON.parse((await agent("list", "--json")).stdout) as { agents: unknown; problems: unknown };
  expect(listed).toMatchObject({ agents: [{ name: "wsl" }], problems: [{ line: 2 }] });
});

it("shows what a file comes to, with the address of the variable", async () => {
  await write("wsl.yaml", MESH);
  const { stdout, code } = await agent("show", "wsl");
  expect(stdout).toMatch(/devices +wsl\n/);
  expect(stdout).toContain("http://10.0.0.7:7402 (from WSL_URL)");
  expect(code).toBe(0);
  expect((await agent("show", "other")).stderr).toContain('no valid file configures an agent "other"');
});

it("prints a schema that takes what the reader takes", async () => {
  const { stdout } = await agent("schema");
  const validate = new Ajv2020({ strict: false }).compile(JSON.parse(stdout) as object);
  const text = await readFile(join(repositoryRoot, "examples/agents/wsl.yaml"), "utf8");
  expect([validate(parse(text)), validate.errors]).toEqual([true, null]);
  const wrong = ["enabled: true", "mode: user", "device_id"].map((part) =>
    validate(parse(text.replace(part, `x_${part}`))),
  );
  expect(wrong).toEqual([false, false, false]);
  expect(validate(parse(text.replace("device_id:", "host:")))).toBe(true);
  expect(validate(parse(text.replace("mode: user", "mode: root")))).toBe(false);
});

it("checks one file, and ends with 2 where there is a problem", async () => {
  await write("a.yaml", "tools_allowed: [fs.read, fs.raed]\n");
  const good = await agent("check", join(home, "agents", "a.yaml"));
  expect(good).toMatchObject({ code: 0, stdout: expect.stringContaining("valid, the agent a") as string });
  expect(good.stderr).toContain('a.yaml:1: warning: tools_allowed lists unknown tool "fs.raed": dropped; did you mean');
  await write("b.yaml", "model: gpt\nlimits: { max_turns: many }\n");
  const bad = await agent("check", join(home, "agents", "b.yaml"), "--json");
  expect(bad.code).toBe(ExitCode.USAGE);
  expect(JSON.parse(bad.stdout)).toMatchObject({ ok: false, problems: [{ line: 1 }, { line: 2 }] });
});
