import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { runReeve } from "../../testkit/cli.ts";
import { type Distributed, startDistributed } from "../../testkit/distributed.ts";
import { percentile } from "./returns.ts";
import { type ChaosResult, runChaos } from "./run-chaos.ts";
import { chaosSettings } from "./settings.ts";
import { printSummary, tally } from "./summary.ts";
import { describeEnd, isGivenUp, lies } from "./truth.ts";

const settings = chaosSettings(process.env);

let plane: Distributed;
let result: ChaosResult;
/** What happened, a line each. */
const said: string[] = [];

beforeAll(async () => {
  plane = await startDistributed();
  console.log(`chaos: ${settings.calls} calls over ${settings.ms / 1000} s, seed ${settings.seed} (REEVE_CHAOS_SEED)`);
  const writing = setInterval(() => void writeLogs().catch(() => undefined), 5000);
  result = await runChaos(plane, settings, (line) => said.push(line));
  clearInterval(writing);
  said.push(...result.retries, ...result.accidents, ...result.evidence.flatMap(lies));
  const calls = result.evidence.flatMap(({ shown }) => shown.slice(0, 1)).filter((call) => call !== undefined);
  console.log(
    printSummary({
      ...settings,
      ...result,
      calls: settings.calls,
      ends: tally(calls.map(describeEnd)),
      givenUp: result.evidence.filter((one) => one.shown[0] && isGivenUp(one, one.shown[0])).length,
    }),
  );
  // A run takes as long as it learns to, and then as long as the last call.
}, settings.ms + 600_000);
afterAll(async () => {
  await writeLogs();
  await plane?.close();
}, 120_000);

test("every caller receives how its call ended", () => {
  expect(result.unheard).toEqual([]);
});

test("no call runs twice, none is lost, and each end is true by its witness, its device and the log", () => {
  expect(result.evidence.flatMap(lies)).toEqual([]);
});

test("there were calls that succeeded and things that broke", () => {
  expect(result.evidence.filter(({ marks }) => marks === 1).length).toBeGreaterThan(settings.calls / 4);
  expect([...result.faults.values()].reduce((sum, count) => sum + count, 0)).toBeGreaterThan(3);
});

test("no service ends by itself, or hangs when it is started", () => {
  expect(result.accidents).toEqual([]);
});

test("every device comes back, in a full run within 3 s of its way", () => {
  expect(result.offline).toEqual([]);
  if (!settings.full) return;
  const times = (isMisled: boolean) => result.returns.filter((one) => one.isMisled === isMisled).map(({ ms }) => ms);
  expect(percentile(times(false), 99)).toBeLessThan(3000);
  expect(percentile(times(true), 50)).toBeLessThan(3000);
});

test("the audit log verifies", async () => {
  for (const one of plane.registries) await one.stop();
  for (const one of plane.policies) await one.stop();
  const key = join(plane.folder, "policy-0", "checkpoint.vkey");
  const { code, stdout, stderr } = await runReeve(["audit", "verify", "--database-url", "--key", key, "--json"], {
    HOME: plane.folder,
    REEVE_POLICY_DATABASE_URL: plane.policyDatabase,
  });
  expect(code, `${stdout}${stderr}`).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({ ok: true, findings: [], open: [] });
});

/** Writes down what everybody logged, where that is wanted. */
async function writeLogs(): Promise<void> {
  const folder = settings.logs;
  if (folder === undefined || plane === undefined) return;
  const { registries, policies, devices } = plane;
  await mkdir(folder, { recursive: true });
  const logs = [
    ...registries.map(({ log }, n) => [`registry-${n}`, log] as const),
    ...policies.map(({ log }, n) => [`policy-${n}`, log] as const),
    ...devices.map(({ name, process }) => [`device-${name}`, process.log] as const),
    ["chaos", said] as const,
  ];
  for (const [name, lines] of logs) await writeFile(join(folder, `${name}.log`), `${lines.join("\n")}\n`);
}
