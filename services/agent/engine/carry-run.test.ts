import { createSecretKey } from "node:crypto";
import { create, type JsonObject } from "@bufbuild/protobuf";
import { expect, it } from "vitest";
import { RunSpecSchema, RunState } from "../../../gen/ts/reeve/agent/v1/run_pb.ts";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { sealerWith } from "../../../lib/identity/sealer.ts";
import { createLogger } from "../../../lib/log/log.ts";
import { openDatabase } from "../../../lib/store/database.ts";
import { createGroupCommit } from "../../../lib/store/group-commit.ts";
import { createInlineSteps } from "../loop/inline-steps.ts";
import type { Turn } from "../providers/model.ts";
import { newRunInput } from "../run-input/run-input.ts";
import { createJournal, RUNS_LOCK } from "../runs/journal.ts";
import { createRunStore } from "../runs/store.ts";
import { type AgentTables, agentMigrations } from "../runs/tables.ts";
import { createTexts } from "../runs/texts.ts";
import { devicelessToolset } from "../testdata/deviceless-toolset.ts";
import { carryRun } from "./carry-run.ts";

const TURN: Turn = {
  text: "Done.",
  toolUses: [],
  stop: { kind: "end" },
  usage: { inputTokens: 1, outputTokens: 1, cacheReadTokens: 0, cacheWriteTokens: 0 },
  native: { provider: "test", content: [] },
};

/** A stored run with a device, and what a worker asks for while it carries it. */
async function storedRun() {
  const db = await openDatabase<AgentTables>({ path: ":memory:", migrations: agentMigrations });
  const writes = createGroupCommit(db, { lock: RUNS_LOCK });
  const texts = createTexts(sealerWith(createSecretKey(Buffer.alloc(32, 7))));
  const store = createRunStore(db, writes, texts);
  const journal = createJournal({ db, writes, texts, onChange: () => undefined, now: Date.now });
  const toolset = { ...devicelessToolset(["exec"]), devices: [{ id: "dev-1", name: "this" }] };
  const input = newRunInput({ runId: "run-1", toolset, prompt: "Look." });
  await store.insert({
    id: "run-1",
    principal: { id: "alice", name: "Alice" },
    digest: "d",
    spec: create(RunSpecSchema, { prompt: "Look.", devices: ["this"] }),
    input: JSON.parse(JSON.stringify({ model: "test/model", agent: "", input })) as JsonObject,
    durable: true,
    untrusted: false,
    owner: "",
    createMs: 1,
  });
  const asked: string[] = [];
  const ports = {
    journal,
    async modelFor(name: string) {
      asked.push(name);
      return { name, turn: async () => TURN };
    },
    toolboxFor() {
      asked.push("toolbox");
      const no = () => Promise.reject(new Error("no call here"));
      return { submit: no, look: no, cancel: no };
    },
    logger: createLogger({ service: "test", level: "silent" }),
  };
  return {
    db,
    asked,
    async carry() {
      await carryRun("run-1", ports, createInlineSteps());
      return (await store.get("run-1"))?.status;
    },
  };
}

it("carries a run with devices", async () => {
  const { carry, asked } = await storedRun();
  expect(await carry()).toMatchObject({ state: RunState.SUCCEEDED, text: "Done.", turns: 1 });
  expect(asked).toEqual(["test/model", "toolbox"]);
});

it("refuses a run whose row says that it is over untrusted content, before a model or a tool is asked for", async () => {
  const { db, carry, asked } = await storedRun();
  await db.updateTable("agent_runs").set({ untrusted: 1 }).where("id", "=", "run-1").execute();
  expect(await carry()).toMatchObject({
    state: RunState.FAILED,
    error: { reason: ErrorReason.UNTRUSTED_CONTENT, metadata: { field: "input.toolset.devices" } },
    turns: 0,
    calls: [],
  });
  expect(asked).toEqual([]);
});
