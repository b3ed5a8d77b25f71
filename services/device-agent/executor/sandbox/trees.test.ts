import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { hidingTree } from "../../testing/hiding-tree.ts";
import { pidsWith } from "../../testing/living.ts";
import { HAS_BWRAP, openTestSandbox, type TestSandbox } from "../../testing/test-sandbox.ts";

/** How many trees run out of time; of the kills of an agent there is a quarter as many. `REEVE_TREES=200` is the full size. */
const TREES = Number(process.env.REEVE_TREES ?? 8);

const AGENT = join(import.meta.dirname, "../../testing/tree-agent.ts");

/** A number that no other process has in its command line; sleep takes it for seconds. */
let next = 0;
const newTag = (): string => `7${process.pid}${String(next++).padStart(4, "0")}`;

/** How many processes of a tree are left a second later, or as soon as there are none. */
async function survivors(tag: string): Promise<number> {
  for (let waited = 0; waited < 1000 && pidsWith(tag).length > 0; waited += 20) await sleep(20);
  return pidsWith(tag).length;
}

describe.runIf(HAS_BWRAP)("a tree of processes that hides in the sandbox", () => {
  let sandbox: TestSandbox;
  beforeAll(async () => {
    sandbox = await openTestSandbox();
  });
  afterAll(() => sandbox[Symbol.asyncDispose]());

  test(`is gone when its time is up, ${TREES} times`, { timeout: 60_000 + TREES * 4000 }, async () => {
    const left: number[] = [];
    for (let round = 0; round < TREES; round++) {
      const tag = newTag();
      let stood = 0;
      const onOutput = (): undefined => {
        stood = pidsWith(tag).length;
      };
      const run = await sandbox.run(["sh", "-c", hidingTree(tag)], { timeoutMs: 3000, onOutput });
      expect(run).toMatchObject({ kind: "timed_out", survivors: 0, stdout: "ready\n" });
      expect(stood).toBeGreaterThanOrEqual(4);
      left.push(await survivors(tag));
    }
    expect(left).toEqual(Array.from({ length: TREES }, () => 0));
  });

  test("is gone when its program ends by itself", async () => {
    const tag = newTag();
    const tree = hidingTree(tag).replace(/exec sleep \S+$/, "exit 0");
    expect(await sandbox.run(["sh", "-c", tree])).toMatchObject({ kind: "exited", code: 0 });
    expect(await survivors(tag)).toBe(0);
  });

  const kills = Math.ceil(TREES / 4);
  test(`is gone when its agent is killed, ${kills} times`, { timeout: 60_000 + kills * 5000 }, async () => {
    const left: number[] = [];
    for (let round = 0; round < kills; round++) {
      const tag = newTag();
      const agent = fork(AGENT, [tag], { stdio: ["ignore", "pipe", "inherit", "ipc"] });
      const folder = String(await messageOf(agent));
      await once(agent.stdout ?? agent, "data");
      expect(pidsWith(`sleep\0${tag}`).length).toBeGreaterThanOrEqual(4);
      agent.kill("SIGKILL");
      await once(agent, "exit");
      left.push(await survivors(tag));
      await rm(folder, { recursive: true });
    }
    expect(left).toEqual(Array.from({ length: kills }, () => 0));
  });
});

async function messageOf(agent: ChildProcess): Promise<unknown> {
  const [message] = await once(agent, "message");
  return message;
}
