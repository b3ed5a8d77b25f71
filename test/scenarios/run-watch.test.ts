import { createSecretKey } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { afterEach, expect, test } from "vitest";
import { runCli } from "../../cli/run-cli.ts";
import { createFakeContext } from "../../cli/testing/fake-context.ts";
import { RunSpecSchema, RunState } from "../../gen/ts/reeve/agent/v1/run_pb.ts";
import { RunService } from "../../gen/ts/reeve/agent/v1/run_service_pb.ts";
import { Role } from "../../gen/ts/reeve/options/v1/access_pb.ts";
import { createTokenFile } from "../../lib/auth/token-file.ts";
import { sealerWith } from "../../lib/identity/sealer.ts";
import { createServiceTransport } from "../../lib/rpc-client/transport.ts";
import { openDatabase } from "../../lib/store/database.ts";
import { createGroupCommit } from "../../lib/store/group-commit.ts";
import { createRunStore } from "../../services/agent/runs/store.ts";
import { type AgentTables, agentMigrations } from "../../services/agent/runs/tables.ts";
import { createTexts } from "../../services/agent/runs/texts.ts";
import { startScriptedModel } from "../../services/agent/scripted-model/server.ts";
import { runReeve } from "../../testkit/cli.ts";
import { eventually } from "../../testkit/eventually.ts";
import { freePorts } from "../../testkit/free-port.ts";
import { startServiceProcess } from "../../testkit/service-process.ts";
import { startTestStack } from "../../testkit/stack.ts";

const opened: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of opened.splice(0).toReversed()) await close();
});

/** The agent service in a process of its own, beside a registry, on a SQLite file. */
async function startApart() {
  const turns = [{ toolUses: [{ name: "exec", input: { argv: ["touch", "x"] } }] }, { text: "Made." }];
  const model = await startScriptedModel({ turns });
  opened.push(model.close);
  const stack = await startTestStack();
  opened.push(stack.close);
  const stateDir = await mkdtemp(join(tmpdir(), "reeve-agent-"));
  opened.push(() => rm(stateDir, { recursive: true }));
  await writeFile(join(stateDir, "sealing.key"), `${KEY.toString("base64")}\n`, { mode: 0o600 });
  const tokens = createTokenFile(join(stack.dataFolder, "tokens.json"));
  const own = tokens.issueToken({ name: "runs-apart", roles: [Role.AGENT] }).token;
  const start = async () => {
    const [port = 0] = await freePorts(1);
    const service = await startServiceProcess("agent", port, {
      REEVE_AGENT_PORT: String(port),
      REEVE_AGENT_STATE_DIR: stateDir,
      REEVE_TOKENS_FILE: join(stack.dataFolder, "tokens.json"),
      REEVE_REGISTRY_URL: stack.registry.url,
      REEVE_AGENT_TOKEN: own,
      ANTHROPIC_API_KEY: "key",
      ANTHROPIC_BASE_URL: model.url,
    });
    opened.push(service.stop);
    return service;
  };
  return { stack, stateDir, start };
}

const KEY = Buffer.alloc(32, 9);

test("a run is watched across the death of the process that it runs in, to an end that says what is known", async () => {
  const { stack, start } = await startApart();
  const service = await start();
  const env = { ...stack.agent, REEVE_REGISTRY_URL: stack.registry.url, REEVE_AGENT_URL: service.url };
  const started = await runReeve(["run", "start", "-d", "this", "Make it."], env);
  expect(started.code, started.stderr).toBe(0);
  const runId = started.stdout.trim();
  const transport = createServiceTransport({ baseUrl: service.url, token: stack.tokens.agent });
  opened.push(() => transport.close());
  const runs = createClient(RunService, transport);
  const approvalId = await eventually(async () => {
    const { run } = await runs.getRun({ runId });
    expect(run?.status?.state).toBe(RunState.WAITING);
    return run?.status?.waits[0]?.approvalId ?? "";
  });
  const terminal = createFakeContext({ env });
  const watching = runCli(["run", "watch", runId, "--json"], terminal);
  await terminal.shown("stdout", "RUN_STATE_WAITING");
  await service.kill();
  // What a person approves while the service is gone runs all the same, and once.
  const approved = await runReeve(["approval", "approve", approvalId, "--yes"], stack.operator);
  expect(approved.code, approved.stderr).toBe(0);
  await service.start();
  expect(await watching).toBe(8);
  expect(terminal.stderrText()).toContain("no connection to the agent service");
  const events = terminal
    .stdoutText()
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  expect(events.map(({ sequence }) => sequence)).toEqual(events.map((_, index) => index + 1));
  expect(events.at(-1).state).toMatchObject({
    state: "RUN_STATE_INTERRUPTED",
    status: { end: "interrupted", turns: 1, calls: [{ tool: "exec", state: "succeeded", approvalId }] },
  });
  const calls = JSON.parse((await runReeve(["call", "list", "--json"], stack.operator)).stdout);
  expect(calls.calls).toHaveLength(1);
  // From a number on: only what comes after it.
  const rest = await runReeve(["run", "watch", runId, "--json", "--from", String(events.length)], env);
  expect(rest.stdout.trim().split("\n")).toHaveLength(1);
});

test("a thousand runs are listed page by page, with how old they are", async () => {
  const { stack, stateDir, start } = await startApart();
  const db = await openDatabase<AgentTables>({ path: join(stateDir, "agent.db"), migrations: agentMigrations });
  const writes = createGroupCommit(db);
  const store = createRunStore(db, writes, createTexts(sealerWith(createSecretKey(KEY))));
  const [id] = /^rv_(\w{12})_/.exec(stack.tokens.agent)?.slice(1) ?? [];
  const now = Date.now();
  await Promise.all(
    Array.from({ length: 1000 }, (_, n) =>
      store.insert({
        id: `old-${n}`,
        principal: { id: id ?? "", name: "agent" },
        digest: "",
        spec: create(RunSpecSchema, { prompt: `Prompt ${n}.`, model: "anthropic/some" }),
        input: {},
        durable: true,
        untrusted: false,
        owner: "",
        createMs: now - (1000 - n) * 3_600_000,
      }),
    ),
  );
  await writes.close();
  await db.destroy();
  const service = await start();
  const env = { ...stack.agent, REEVE_REGISTRY_URL: stack.registry.url, REEVE_AGENT_URL: service.url };
  const all = JSON.parse((await runReeve(["run", "list", "--limit", "2000", "--json"], env)).stdout);
  const ids = all.runs.map((run: { id: string }) => run.id);
  expect(ids).toEqual(Array.from({ length: 1000 }, (_, n) => `old-${999 - n}`));
  const first = await runReeve(["run", "list", "--limit", "3"], env);
  expect(first.stdout).toMatch(/pending +Prompt 999\. +anthropic\/some +agent +1h ago +old-999/);
  const [, token = ""] = /--page-token (\S+)/.exec(first.stderr) ?? [];
  const next = await runReeve(["run", "list", "--limit", "3", "--page-token", token, "--json"], env);
  expect(JSON.parse(next.stdout).runs.map((run: { id: string }) => run.id)).toEqual(["old-996", "old-995", "old-994"]);
  const recent = await runReeve(["run", "list", "--since", "10h", "--json"], env);
  expect(JSON.parse(recent.stdout).runs.length).toBeGreaterThanOrEqual(9);
  expect(JSON.parse(recent.stdout).runs.length).toBeLessThanOrEqual(10);
  expect((await runReeve(["run", "list", "--state", "succeeded", "--json"], env)).stdout).toContain('"runs": []');
});
