import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Role } from "../../gen/ts/reeve/options/v1/access_pb.ts";
import { createTokenFile } from "../../lib/auth/token-file.ts";
import { type ScriptedModel, startScriptedModel } from "../../services/agent/scripted-model/server.ts";
import { runReeve } from "../../testkit/cli.ts";
import { callerOf } from "../../testkit/clients.ts";
import { startTestStack, type TestStack } from "../../testkit/stack.ts";

let model: ScriptedModel;
let stack: TestStack;
/** The id of the agent's own token. */
let agentId: string;
beforeAll(async () => {
  const use = { name: "exec", input: { argv: ["uname", "-s"] } };
  model = await startScriptedModel({ turns: [{ toolUses: [use] }, { text: "It is Linux." }] });
  stack = await startTestStack({ env: { ...process.env, ANTHROPIC_API_KEY: "key", ANTHROPIC_BASE_URL: model.url } });
  const issued = createTokenFile(join(stack.dataFolder, "tokens.json")).issueToken({
    name: "wsl",
    roles: [Role.AGENT],
  });
  agentId = issued.entry.id;
  const folder = join(stack.dataFolder, "agents");
  await mkdir(folder, { recursive: true });
  const write = (name: string, text: string) => writeFile(join(folder, name), text, { mode: 0o600 });
  await write("wsl.token", `${issued.token}\n`);
  await write(
    "wsl.yaml",
    `system: You look after one machine.
token_file: wsl.token
device_mesh:
  enabled: true
  host: this
  mode: user
  device_agent_url: "http://10.42.0.10:7474"
  manifest_id: manifest_home-wsl_v1
  timeout_seconds: 60
  tools_allowed: [exec, fs.read, fs.list, project.create]
`,
  );
  await write("broken.yaml", "device_mesh:\n  enabled: true\n  mode: root\n  host: this\n");
});
afterAll(async () => {
  await stack.close();
  await model.close();
});

test("a run of an agent has what its file says, and calls with the agent's own token", async () => {
  const done = await runReeve(["run", "start", "--agent", "wsl", "--watch", "Which system is this?"], stack.owner);
  expect([done.code, done.stdout]).toEqual([0, expect.stringContaining("It is Linux.")]);
  const [first] = model.requests as unknown as { system: unknown; tools: { name: string }[] }[];
  expect(JSON.stringify(first?.system)).toContain("You look after one machine.");
  expect(first?.tools.map(({ name }) => name).toSorted()).toEqual(["exec", "fs_list", "fs_read"]);
  const { calls } = await callerOf(stack, stack.tokens.operator).registry.listCalls({});
  expect(calls.map(({ spec }) => [spec?.tool, spec?.principalId])).toEqual([["exec", agentId]]);
});

test("a run of an agent whose file is broken is refused with the line", async () => {
  const { code, stderr } = await runReeve(["run", "start", "--agent", "broken", "Hello"], stack.owner);
  expect([code, stderr]).toEqual([
    2,
    expect.stringContaining("line 3: device_mesh.mode must be one of user, sudo, all"),
  ]);
});
