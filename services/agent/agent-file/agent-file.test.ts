import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { durationMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, onTestFinished, test } from "vitest";
import { OnDeviceGone } from "../../../gen/ts/reeve/agent/v1/run_pb.ts";
import { Mode } from "../../../gen/ts/reeve/device/v1/device_pb.ts";
import { agentToken } from "./agent-token.ts";
import { agentsFolder, loadAgents } from "./load-agents.ts";
import { parseAgentFile } from "./parse-agent-file.ts";

const VARIABLE = "AGENT_HOME_WSL_DEVICE_MESH_URL";

/** The block as agents of a device mesh are configured today, to the letter. */
const BLOCK = `device_mesh:
  enabled: true
  device_id: home-wsl                # logged as audit context; aliased as "host"
  mode: user                         # user | sudo | all
  device_agent_url: "http://10.42.0.10:7474"
  device_agent_url_env: AGENT_HOME_WSL_DEVICE_MESH_URL  # optional; wins when set + non-empty
  manifest_id: manifest_home-wsl_v1  # metadata only; the device enforces
  client_timeout_s: 60               # aliased as "timeout_seconds"
  tools_allowed:                     # whitelist; empty = keep everything mode allowed
    - exec
    - fs.read
    - fs.list
`;

function parse(text: string, env: Record<string, string> = {}) {
  return parseAgentFile(text, { file: "wsl.yaml", folder: "/agents", home: "/home/me", name: "wsl", env });
}

/** The agent of a file that has neither problems nor warnings. */
function agentOf(text: string, env: Record<string, string> = {}) {
  const { agent, problems, warnings } = parse(text, env);
  expect([...problems, ...warnings]).toEqual([]);
  if (agent === undefined) throw new Error("no agent");
  return agent;
}

const linesOf = (notes: readonly { line: number; message: string }[]) => notes.map((n) => `${n.line}: ${n.message}`);

describe("the device_mesh block", () => {
  test("works as it is printed", () => {
    const { limits, ...agent } = agentOf(BLOCK);
    expect(agent).toMatchObject({
      name: "wsl",
      devices: ["home-wsl"],
      toolsAllowed: ["exec", "fs.read", "fs.list"],
      deviceMesh: {
        device: "home-wsl",
        mode: Mode.USER,
        deviceAgentUrl: "http://10.42.0.10:7474",
        urlFrom: undefined,
        manifestId: "manifest_home-wsl_v1",
      },
    });
    expect(limits?.maxWait && durationMs(limits.maxWait)).toBe(60_000);
  });

  test.each([
    ["host", "device_id:", "host:"],
    ["timeout_seconds", "client_timeout_s:", "timeout_seconds:"],
  ])("means the same with the alias %s", (_, key, alias) => {
    expect(BLOCK).toContain(key);
    expect(agentOf(BLOCK.replace(key, alias))).toEqual(agentOf(BLOCK));
  });

  test("takes the address of the variable where that is set and not empty", () => {
    const from = (env: Record<string, string>) => {
      const { deviceAgentUrl, urlFrom } = agentOf(BLOCK, env).deviceMesh ?? {};
      return [deviceAgentUrl, urlFrom];
    };
    expect(from({ [VARIABLE]: "https://wsl.example:7402" })).toEqual(["https://wsl.example:7402", VARIABLE]);
    expect(from({ [VARIABLE]: "" })).toEqual(["http://10.42.0.10:7474", undefined]);
  });

  test("gives no device where it is not enabled, and says so where it does not say it itself", () => {
    expect(agentOf(BLOCK.replace("true", "false"))).toMatchObject({ devices: [], deviceMesh: undefined });
    const { agent, warnings } = parse(BLOCK.replace("  enabled: true\n", ""));
    expect(agent?.devices).toEqual([]);
    expect(linesOf(warnings)).toEqual(["2: device_mesh is not enabled: the agent gets no device from it"]);
  });

  test("keeps everything that the mode leaves where no tool is listed", () => {
    const tools = (mode: string) =>
      agentOf(`device_mesh: { enabled: true, host: a, mode: ${mode}, tools_allowed: [] }`).toolsAllowed;
    expect(tools("user")).toEqual(expect.arrayContaining(["exec", "fs.read"]));
    expect(tools("user")).not.toContain("pkg.install");
    expect(tools("sudo")).toContain("pkg.install");
    expect(tools("sudo")).not.toContain("fs.write");
    expect(tools("all")).toEqual([]);
  });

  test("drops a tool that is not known or not of the mode, and says which", () => {
    const { agent, warnings } = parse(
      "device_mesh:\n  enabled: true\n  host: a\n  mode: user\n  tools_allowed:\n    - fs.read\n    - fs.raed\n" +
        "    - project.create\n    - pkg.install\n    - printer:print\n",
    );
    expect(agent?.toolsAllowed).toEqual(["fs.read", "printer:print"]);
    expect(linesOf(warnings)).toEqual([
      '7: tools_allowed lists unknown tool "fs.raed": dropped; did you mean "fs.read"?',
      expect.stringMatching(/^8: tools_allowed lists unknown tool "project.create": dropped/) as string,
      "9: tools_allowed lists pkg.install, which is no tool of this mode: dropped",
    ]);
  });
});

test.each<[string, string, string[], Record<string, string>?]>([
  ["another switch", BLOCK.replace("true", "yes please"), ["2: device_mesh.enabled must be true or false"]],
  [
    "no device",
    BLOCK.replace(/ {2}device_id.*\n/, ""),
    ["2: device_mesh is enabled and names no device: write its id or name in device_id (or host)"],
  ],
  [
    "both names of a field",
    BLOCK.replace("  mode: user", "  host: other\n  mode: user"),
    ["4: host is another name of device_id: write one of them"],
  ],
  [
    "another mode",
    BLOCK.replace("mode: user", "mode: root"),
    ['4: device_mesh.mode must be one of user, sudo, all, not "root"'],
  ],
  [
    "no address",
    BLOCK.replace("http://10.42.0.10:7474", "10.42.0.10:7474"),
    ["5: device_mesh.device_agent_url must be the address of a device's agent, such as http://10.42.0.10:7402"],
  ],
  [
    "an address with a password",
    BLOCK.replace("http://", "http://me:pw@"),
    ["5: device_mesh.device_agent_url must not hold a name or a password: a device's agent takes none"],
  ],
  [
    "a variable with no address",
    BLOCK,
    [`6: ${VARIABLE} must be the address of a device's agent, such as http://10.42.0.10:7402`],
    { [VARIABLE]: "not an address" },
  ],
  [
    "no name of a variable",
    BLOCK.replace(VARIABLE, "$HOME_URL"),
    ["6: device_mesh.device_agent_url_env: must be the name of an environment variable, such as WSL_URL"],
  ],
  [
    "a timeout that is no number",
    BLOCK.replace("60 ", "1m "),
    ["8: device_mesh.client_timeout_s must be a whole number from 0"],
  ],
  [
    "a timeout of nothing",
    BLOCK.replace("client_timeout_s: 60", "timeout_seconds: 0"),
    ["8: device_mesh.client_timeout_s: must be greater than or equal to 1 and less than or equal to 2592000"],
  ],
  [
    "tools that are no list",
    BLOCK.replace(/tools_allowed:.*/s, "tools_allowed: exec\n"),
    ["9: device_mesh.tools_allowed must be a list"],
  ],
  [
    "tools of which none is left",
    BLOCK.replace(/tools_allowed:.*/s, "tools_allowed: [memory.recall]\n"),
    ["9: none of the tools in tools_allowed is left"],
  ],
  [
    "a misspelt key",
    BLOCK.replace("manifest_id", "manifst_id"),
    ['7: device_mesh: unknown key "manifst_id"; did you mean "manifest_id"?'],
  ],
  [
    "an alias of YAML",
    BLOCK.replace("- fs.list", "- *x"),
    ["12: aliases are not supported: write it out", "12: an entry of device_mesh.tools_allowed must be a text"],
  ],
  [
    "a token",
    "token: rv_0123456789ab_secret\n",
    [
      '1: an agent\'s file: unknown key "token"; a file is no place for a token: name its file in token_file, or its variable in token_env',
    ],
  ],
  [
    "everything at once",
    `model: gpt\nlimits: { max_turns: 9999 }\n${BLOCK.replace("mode: user", "mode: root").replace(": 60 ", ": x ")}`,
    [
      "1: model: must be provider/name, such as ollama/qwen3:8b",
      "2: limits.max_turns: must be less than or equal to 1000",
      '6: device_mesh.mode must be one of user, sudo, all, not "root"',
      "10: device_mesh.client_timeout_s must be a whole number from 0",
    ],
  ],
  [
    "two places for one thing",
    "devices: [a]\ntools_allowed: [exec]\napproval_wait: 1h\nlimits: { max_wait: 2h }\n" +
      "device_mesh: { enabled: true, host: b, tools_allowed: [exec] }\n",
    [
      "1: device_mesh names the agent's device, too: name the devices once",
      "3: approval_wait is another place for limits.max_wait: write one of them",
      "5: tools_allowed stands above, too: state the tools once",
    ],
  ],
])("%s is a problem with its line and why", (_, text, expected, env = {}) => {
  const { agent, problems } = parse(text, env);
  expect(linesOf(problems)).toEqual(expected);
  expect(agent).toBeUndefined();
});

test("everything else of a file is read as it stands", () => {
  const agent = agentOf(`name: nightly
model: ollama/qwen3:8b
system: |
  You look after two machines.
devices: [laptop, nas]
tools_allowed: [fs.read, exec]
limits: { max_turns: 10, max_tokens: 50000, max_tool_calls: 20, max_parallel: 2 }
approval_wait: 2d
on_device_gone: queue
token_file: ~/nightly.token
`);
  expect(agent).toMatchObject({
    name: "nightly",
    model: "ollama/qwen3:8b",
    system: "You look after two machines.\n",
    devices: ["laptop", "nas"],
    toolsAllowed: ["fs.read", "exec"],
    limits: { maxTurns: 10, maxTokens: 50_000n, maxToolCalls: 20, maxParallel: 2, maxWait: { seconds: 172_800n } },
    onDeviceGone: OnDeviceGone.QUEUE,
    token: { file: "/home/me/nightly.token" },
  });
});

async function newFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "reeve-agents-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  return folder;
}

describe("a folder of agents", () => {
  async function folderOf(files: Record<string, string>): Promise<string> {
    const folder = await newFolder();
    for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text, { mode: 0o600 });
    return folder;
  }

  test("has those whose files are valid, and every problem of the others", async () => {
    const folder = await folderOf({
      "a.yaml": "model: anthropic/claude\n",
      "b.yml": "nme: x\n",
      "c.yaml": "name: d\n",
      "d.yaml": "",
      "open.yaml": "",
      "notes.txt": "not: [read",
    });
    await chmod(join(folder, "open.yaml"), 0o666);
    const { agents, problems } = await loadAgents(folder, {});
    expect([...agents.keys()]).toEqual(["a"]);
    expect(problems.map(({ file, line, message }) => `${file.slice(folder.length + 1)}:${line}: ${message}`)).toEqual([
      'b.yml:1: an agent\'s file: unknown key "nme"; did you mean "name"?',
      expect.stringMatching(/^open.yaml:1: .*may be changed by others: chmod go-w /) as string,
      `d.yaml:1: the agent d stands in ${join(folder, "c.yaml")}, too: give one another name`,
    ]);
  });

  test("that does not exist has none", async () => {
    expect(await loadAgents(agentsFolder({}, "/nowhere"), {})).toEqual({
      agents: new Map(),
      problems: [],
      warnings: [],
    });
  });

  test("is the one that the environment names", () => {
    expect(agentsFolder({ REEVE_AGENTS_DIR: "/etc/agents" }, "/data")).toBe("/etc/agents");
  });
});

describe("an agent's token", () => {
  const TOKEN = `rv_0123456789ab_${"a".repeat(43)}`;

  test("is the variable's or the file's, and never another's", async () => {
    const file = join(await newFolder(), "token");
    await writeFile(file, `${TOKEN}\n`, { mode: 0o600 });
    expect(agentToken({ name: "a", token: { file } }, {})).toBe(TOKEN);
    expect(agentToken({ name: "a", token: { env: "A_TOKEN" } }, { A_TOKEN: TOKEN })).toBe(TOKEN);
    expect(agentToken({ name: "a", token: undefined }, {})).toBeUndefined();
    expect(() => agentToken({ name: "a", token: { env: "A_TOKEN" } }, {})).toThrow(
      /a has no token: the variable A_TOKEN/,
    );
    await chmod(file, 0o644);
    expect(() => agentToken({ name: "a", token: { file } }, {})).toThrow(/open to others/);
  });
});
