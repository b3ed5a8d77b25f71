import { setTimeout as sleep } from "node:timers/promises";
import { parentPort, workerData } from "node:worker_threads";
import { createRandom } from "../chaos/random.ts";
import { type Attack, type AttackReport, CROWD_HOLD_MS } from "./attack.ts";
import { joinCrowd } from "./crowd.ts";
import { createTraffic } from "./traffic.ts";
import { makeVisit } from "./visit.ts";

/** The hostile clients, on a thread of their own: what an honest caller measures beside them is the server, not them. */
const { seed, mutants, perSecond, atOnce, targets, tokens, certificates, crowd } = workerData as Attack;
const post = (report: AttackReport): void => parentPort?.postMessage(report);

async function attack(): Promise<void> {
  const traffic = createTraffic({ random: createRandom(seed), targets, tokens, certificates });
  const done: Record<string, number> = {};
  const began = performance.now();
  let sent = 0;
  const one = async (): Promise<void> => {
    while (sent < mutants) {
      const visit = traffic.next().value;
      const early = began + (sent / perSecond) * 1000 - performance.now();
      sent += visit.mutants;
      if (early > 1) await sleep(early);
      await makeVisit(visit);
      done[visit.kind] = (done[visit.kind] ?? 0) + visit.mutants;
    }
  };
  const reporting = setInterval(() => post({ kind: "progress", done: { ...done } }), 500);
  await Promise.all(Array.from({ length: atOnce }, one));
  clearInterval(reporting);
  post({ kind: "progress", done: { ...done } });
}

async function gather(connections: number): Promise<void> {
  const [target] = targets;
  if (target === undefined) throw new TypeError("a crowd needs a port to go to");
  const crowded = await joinCrowd(target, connections);
  post({ kind: "crowd", connected: crowded.connected, open: crowded.open() });
  await sleep(CROWD_HOLD_MS);
  post({ kind: "crowd", connected: crowded.connected, open: crowded.open() });
  crowded.leave();
}

if (crowd > 0) await gather(crowd);
else await attack();
parentPort?.close();
