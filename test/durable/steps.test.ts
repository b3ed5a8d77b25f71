import { mkdtemp, rm } from "node:fs/promises";
import { connect } from "node:http2";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { JsonValue } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type RestateServer, startRestateServer } from "../../cli/stack/restate-server.ts";
import { createLogger } from "../../lib/log/log.ts";
import { openDatabase } from "../../lib/store/database.ts";
import { createGroupCommit } from "../../lib/store/group-commit.ts";
import type { RunEngine } from "../../services/agent/engine/engine.ts";
import { createRestateEngine } from "../../services/agent/engine/restate/restate-engine.ts";
import { createWakers, type WakerTables, wakerMigrations } from "../../services/agent/engine/restate/wakers.ts";
import type { Steps } from "../../services/agent/loop/steps.ts";
import { eventually } from "../../testkit/eventually.ts";
import { freePorts } from "../../testkit/free-port.ts";

const logger = createLogger({ service: "test", level: process.env.TEST_LOG === undefined ? "silent" : "debug" });
let folder: string;
let server: RestateServer;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "reeve-steps-"));
  server = await startRestateServer({ folder: join(folder, "restate"), logger });
});
afterAll(async () => {
  await server?.close();
  await rm(folder, { recursive: true, force: true });
});

/** The rows of runs, in memory, and what each run does. */
async function world(jobs: Record<string, (steps: Steps) => Promise<void>>) {
  const db = await openDatabase<WakerTables>({ path: ":memory:", migrations: wakerMigrations });
  const wakers = createWakers(db, createGroupCommit(db));
  const open = new Map<string, { cancel: boolean; answers: Map<string, string> }>();
  const ended = new Map<string, PromiseWithResolvers<void>>();
  const endOf = (runId: string) => {
    const end = ended.get(runId) ?? Promise.withResolvers<void>();
    ended.set(runId, end);
    return end;
  };
  const [port = 0] = await freePorts(1);
  const engine = async (): Promise<RunEngine> => {
    const made = await createRestateEngine({
      ingress: server.ingress,
      admin: server.admin,
      worker: { host: "127.0.0.1", port, identityKeys: [server.identityKey] },
      wakers,
      runs: {
        open: async () => [...open.keys()].map((runId) => ({ runId })),
        request: async (runId) => open.get(runId),
        answer: async (runId, questionId) => open.get(runId)?.answers.get(`question/${questionId}`),
      },
      clientOf: () => Promise.reject(new Error("no calls here")),
      async carry(runId, steps) {
        await jobs[runId]?.(steps);
        open.delete(runId);
        endOf(runId).resolve();
      },
      logger,
      lookMs: 100,
    });
    return made;
  };
  const start = async (on: RunEngine, runId: string) => {
    open.set(runId, { cancel: false, answers: new Map() });
    await on.start(runId);
  };
  return { engine, start, open, port, wakers, ended: (runId: string) => endOf(runId).promise };
}

describe("steps on Restate", () => {
  it("run each effect once, and go on with what they came to after a wait, on another worker", async () => {
    const effects: string[] = [];
    const seen: JsonValue[] = [];
    const { engine, start, open, ended } = await world({
      one: async (steps) => {
        const first = await steps.do("first", async () => ({ at: effects.push("first") }));
        const answer = await steps.answer([{ name: "question/1" }]);
        const last = await steps.do("last", async () => ({ at: effects.push("last") }));
        seen.push([first, answer as never, last]);
      },
    });
    const worker = await engine();
    await start(worker, "one");
    await expect.poll(() => effects).toEqual(["first"]);
    await sleep(300);
    await worker.close();
    const other = await engine();
    open.get("one")?.answers.set("question/1", "yes");
    await other.answer("one", "question/1", "yes");
    await ended("one");
    expect(effects).toEqual(["first", "last"]);
    expect(seen).toEqual([[{ at: 1 }, { name: "question/1", value: "yes" }, { at: 2 }]]);
    await other.close();
  });

  it("outlive the server, killed in an effect and while it waits", async () => {
    const effects: string[] = [];
    const inEffect = Promise.withResolvers<void>();
    const { engine, start, open, ended } = await world({
      two: async (steps) => {
        await steps.do("first", async () => ({ at: effects.push("first") }));
        await steps.do("killed", async () => {
          effects.push("killed");
          if (effects.length === 2) {
            inEffect.resolve();
            await new Promise(() => undefined);
          }
          return {};
        });
        await steps.answer([{ name: "question/1" }]);
        await steps.do("last", async () => ({ at: effects.push("last") }));
      },
    });
    const worker = await engine();
    await start(worker, "two");
    await inEffect.promise;
    process.kill(server.pid() ?? 0, "SIGKILL");
    await expect.poll(() => effects).toEqual(["first", "killed", "killed"]);
    await sleep(200);
    process.kill(server.pid() ?? 0, "SIGKILL");
    open.get("two")?.answers.set("question/1", "yes");
    await worker.answer("two", "question/1", "yes");
    await ended("two");
    expect(effects).toEqual(["first", "killed", "killed", "last"]);
    await worker.close();
  });

  it("give the first of several, count their times, and see that the run is canceled", async () => {
    const seen: unknown[] = [];
    const { engine, start, open, ended } = await world({
      three: async (steps) => {
        const slow = { name: "question/a", seconds: 4 };
        seen.push(await steps.answer([slow, { name: "question/b" }]), await steps.answer([slow]));
        seen.push(await steps.answer([{ name: "question/c" }]), steps.signal.aborted);
        seen.push(await steps.answer([{ name: "question/c", seconds: 0.2 }]));
        seen.push(await steps.do("after", async (signal) => ({ aborted: signal.aborted })));
      },
    });
    const worker = await engine();
    await start(worker, "three");
    await expect.poll(() => open.get("three")).toBeDefined();
    await sleep(200);
    open.get("three")?.answers.set("question/b", "first");
    await worker.answer("three", "question/b", "first");
    await eventually(() => expect(seen.length).toBeGreaterThanOrEqual(2));
    await sleep(200);
    const run = open.get("three");
    if (run !== undefined) run.cancel = true;
    await worker.cancel("three");
    await ended("three");
    expect(seen.slice(-6)).toEqual([
      { name: "question/b", value: "first" },
      { name: "question/a", value: undefined },
      undefined,
      true,
      { name: "question/c", value: undefined },
      { aborted: true },
    ]);
    await worker.close();
  });

  it("are taken by one invocation only, which the server signs", async () => {
    const effects: string[] = [];
    const { engine, start, port, wakers } = await world({
      four: async (steps) => {
        await steps.do("first", async () => ({ at: effects.push("first") }));
        await steps.answer([{ name: "question/1" }]);
      },
    });
    const worker = await engine();
    await start(worker, "four");
    await expect.poll(() => effects).toEqual(["first"]);
    expect(await wakers.claim("four", "inv_of_another_server")).toBe(false);
    const session = connect(`http://127.0.0.1:${port}`);
    const status = await new Promise((resolve, reject) => {
      const stream = session.request({ ":method": "POST", ":path": "/invoke/ReeveRun/run" });
      stream.once("response", (headers) => resolve(headers[":status"]));
      stream.once("error", reject);
      stream.end();
    });
    session.close();
    expect(status).toBe(401);
    await worker.close();
  });
});
