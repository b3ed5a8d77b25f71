import { readFile, stat, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { CLI, runReeve, runReeveProcess } from "../../testkit/cli.ts";
import { STDIO_CLIENTS } from "../../testkit/mcp-clients.ts";
import { startTestStack, type TestStack } from "../../testkit/stack.ts";

let plane: TestStack;

beforeAll(async () => {
  plane = await startTestStack();
});
afterAll(() => plane.close());

describe("reeve mcp config", () => {
  const [script] = process.argv.slice(1);
  beforeEach(() => {
    process.argv[1] = CLI;
    return () => {
      process.argv[1] = script ?? "";
    };
  });

  test("prints a configuration without a token, and keeps one that a client is served with", async () => {
    const { code, stdout } = await runReeve(["mcp", "config", "claude-code"], plane.operator);
    expect(code).toBe(0);
    expect(stdout).not.toMatch(/rv_/);
    const { mcpServers } = JSON.parse(stdout) as { mcpServers: { reeve: { args: string[]; env: object } } };
    expect(mcpServers.reeve).toMatchObject({
      command: process.execPath,
      args: [CLI, "mcp", "--agent", "claude-code"],
      env: { REEVE_DATA_DIR: plane.dataFolder },
    });
    const path = join(plane.dataFolder, "agents", "claude-code.token");
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    const client = await STDIO_CLIENTS["SDK v1, 2025-11-25"](
      { REEVE_DATA_DIR: plane.dataFolder },
      "--agent",
      "claude-code",
    );
    expect((await client.use("device_ping", {})).isError).toBe(false);
    await client.close();
  });

  test("names the program itself, and not a link to it that may be gone tomorrow", async () => {
    const link = join(plane.workFolder, "reeve");
    await symlink(CLI, link);
    process.argv[1] = link;
    const { stdout } = await runReeve(["mcp", "config", "claude-code"], plane.operator);
    expect(stdout).toContain(JSON.stringify(CLI));
    expect(stdout).not.toContain(link);
  });

  test("revokes the token that it replaces", async () => {
    await runReeve(["mcp", "config", "cursor"], plane.operator);
    const path = join(plane.dataFolder, "agents", "cursor.token");
    const former = (await readFile(path, "utf8")).trim();
    await runReeve(["mcp", "config", "cursor"], plane.operator);
    expect((await readFile(path, "utf8")).trim()).not.toBe(former);
    const { stdout } = await runReeve(["token", "list", "--json"], plane.operator);
    const { tokens } = JSON.parse(stdout) as { tokens: { name: string }[] };
    expect(tokens.filter(({ name }) => name === "mcp-cursor")).toHaveLength(1);
  });

  test("shows the token once where the client sends requests, and not in the configuration", async () => {
    const { stdout, stderr } = await runReeve(["mcp", "config", "codex", "--http"], plane.operator);
    expect(stdout).toContain(`url = "${plane.registry.url}/mcp"`);
    expect(stdout).not.toMatch(/rv_/);
    expect(stderr).toMatch(/export REEVE_AGENT_TOKEN=rv_/);
  });

  test("writes into a project's file beside its other entries", async () => {
    const folder = vi.spyOn(process, "cwd").mockReturnValue(plane.workFolder);
    const file = join(plane.workFolder, ".mcp.json");
    await writeFile(file, '{"mcpServers": {"other": {"url": "x"}}}');
    try {
      expect((await runReeve(["mcp", "config", "claude-code", "--write"], plane.operator)).code).toBe(0);
      const written = JSON.parse(await readFile(file, "utf8")) as { mcpServers: object };
      expect(Object.keys(written.mcpServers)).toEqual(["other", "reeve"]);
      await writeFile(file, "// mine");
      const refused = await runReeve(["mcp", "config", "claude-code", "--write"], plane.operator);
      expect([refused.code, await readFile(file, "utf8")]).toEqual([2, "// mine"]);
      expect((await runReeve(["mcp", "config", "codex", "--write"], plane.operator)).code).toBe(2);
    } finally {
      folder.mockRestore();
    }
  });

  test("knows its clients", async () => {
    const { code, stderr } = await runReeve(["mcp", "config", "emacs"], plane.operator);
    expect([code, stderr]).toEqual([2, expect.stringContaining("known: claude-code, cursor, vscode, codex")]);
  });
});

describe("reeve mcp", () => {
  test("lists what its configuration allows, and calls nothing else", async () => {
    const client = await STDIO_CLIENTS["SDK v1, 2025-11-25"](
      { REEVE_DATA_DIR: plane.dataFolder, REEVE_AGENT_TOKEN: plane.tokens.agent },
      "--tools",
      "device.ping,fs.raed",
    );
    const names = (await client.list()).map(({ name }) => name);
    expect(names).toEqual(["device_ping", "call_cancel", "call_result"]);
    expect((await client.use("fs_read", { path: "/etc/hosts" })).text).toContain("error: unknown_tool");
    await client.close();
  });

  test("serves no model with a person's rights", async () => {
    const env = { REEVE_DATA_DIR: plane.dataFolder, REEVE_AGENT_TOKEN: plane.tokens.operator };
    const { code, stdout, stderr } = await runReeve(["mcp"], env);
    expect([code, stdout]).toEqual([2, ""]);
    expect(stderr).toContain("an MCP client calls as an agent");
  });

  test("says how to get a token, and how to start a registry", async () => {
    const none = await runReeve(["mcp"], { REEVE_DATA_DIR: plane.dataFolder });
    expect([none.code, none.stderr]).toEqual([2, expect.stringContaining("reeve mcp config CLIENT")]);
    const env = { HOME: plane.workFolder, REEVE_AGENT_TOKEN: plane.tokens.agent };
    const nowhere = await runReeve(["mcp"], env);
    expect([nowhere.code, nowhere.stderr]).toEqual([2, expect.stringContaining("reeve up")]);
    const offline = await runReeve(["mcp"], { ...env, REEVE_REGISTRY_URL: "http://127.0.0.1:9" });
    expect(offline.code).not.toBe(0);
    expect(offline.stderr).toContain("reeve up");
  });

  test("ends with its client", async () => {
    const env = { REEVE_DATA_DIR: plane.dataFolder, REEVE_AGENT_TOKEN: plane.tokens.agent };
    const { code, stdout } = await runReeveProcess(["mcp"], env);
    expect([code, stdout]).toEqual([0, ""]);
  });
});
