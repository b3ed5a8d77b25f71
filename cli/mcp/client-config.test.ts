import { describe, expect, test } from "vitest";
import { CLIENTS, mergeConfig, type Reach } from "./client-config.ts";

const command: Reach = { kind: "command", command: "/usr/bin/node", args: ["/opt/reeve.js", "mcp"], env: {} };
const http: Reach = { kind: "http", url: "http://127.0.0.1:7400/mcp" };
const of = (name: string, reach: Reach) => CLIENTS[name]?.text(reach) ?? "";

describe("a client's configuration", () => {
  test.each(["claude-code", "cursor", "vscode"])("%s: is JSON without a token", (name) => {
    const key = name === "vscode" ? "servers" : "mcpServers";
    expect(JSON.parse(of(name, command))).toMatchObject({
      [key]: { reeve: { command: "/usr/bin/node", args: ["/opt/reeve.js", "mcp"] } },
    });
    expect(JSON.parse(of(name, http))).toMatchObject({
      [key]: {
        reeve: {
          url: "http://127.0.0.1:7400/mcp",
          headers: { Authorization: expect.stringMatching(/^Bearer \$\{/) as unknown },
        },
      },
    });
  });

  test("codex: is TOML, with a time limit above the longest wait", () => {
    const env = { REEVE_DATA_DIR: 'C:\\a "b"' };
    expect(of("codex", { ...command, env })).toBe(
      '[mcp_servers.reeve]\ncommand = "/usr/bin/node"\nargs = ["/opt/reeve.js","mcp"]\ntool_timeout_sec = 120\n\n' +
        '[mcp_servers.reeve.env]\nREEVE_DATA_DIR = "C:\\\\a \\"b\\""\n',
    );
    expect(of("codex", http)).toContain('bearer_token_env_var = "REEVE_AGENT_TOKEN"');
  });

  test("goes into a file beside what that holds, and replaces its own entry whole", () => {
    const present = '{"mcpServers": {"other": {"url": "x"}, "reeve": {"url": "old"}}, "theme": 1}';
    const merged = JSON.parse(mergeConfig(present, of("cursor", command)) ?? "");
    expect(merged).toEqual({
      mcpServers: { other: { url: "x" }, reeve: { command: "/usr/bin/node", args: ["/opt/reeve.js", "mcp"] } },
      theme: 1,
    });
    for (const broken of ["[]", "{ // a comment\n}", ""]) expect(mergeConfig(broken, "{}")).toBeUndefined();
  });
});
