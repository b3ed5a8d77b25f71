import { readFile } from "node:fs/promises";
import { device, testAuthority, testMaterial } from "../../lib/identity/testdata/certificates.ts";
import { type Attack, runAttack } from "./attack.ts";
import { type HonestCaller, type HonestFigures, startHonestCaller } from "./honest.ts";
import { type AttackedReeve, startReeveUp } from "./reeve-up.ts";

/** How much hostility there is. */
export interface HostileSettings {
  mutants: number;
  /** How many of them a second at most. Default 600: three hundred thousand take less than nine minutes. */
  perSecond?: number;
  /** Decides what is sent; the machine's own timing is not in it. */
  seed: number;
  /** Connections that strangers hold at once in the second phase. */
  crowd: number;
  /** Gets a line every few seconds. */
  onProgress?: (line: string) => void;
}

/** What came of one phase. */
export interface PhaseReport {
  honest: HonestFigures;
  seconds: number;
}

/** What came of it all. */
export interface HostileReport {
  /** Mutants that were sent, by what was wrong with them. */
  byKind: Record<string, number>;
  mutants: number;
  /** How the process ended by itself; undefined where it did not. */
  ended: string | undefined;
  /** Errors of connections that nothing but the process's guard caught. */
  uncaught: number;
  /** Its exit code when it was asked to end. */
  exitCode: number | null;
  /** Resident memory in megabytes over the first phase, one figure a second; empty where the machine does not say. */
  rssMb: number[];
  attack: PhaseReport;
  crowd: PhaseReport & { connected: number; openAfter: number };
  /** The last of what the process wrote to standard error. */
  log: string;
}

/** Descriptors that a process needs besides those of the crowd. */
const OTHER_DESCRIPTORS = 500;

const PER_SECOND = 600;

/** Hostile connections at a time: with more, what is measured is the queue of their own requests. */
const AT_ONCE = 16;

/**
 * Attacks every port of a `reeve up` of its own, then fills the registry's with strangers, while an honest caller goes on.
 * Everything is on loopback. Rejects where the machine allows fewer descriptors than it takes.
 */
export async function runHostile(settings: HostileSettings): Promise<HostileReport> {
  await requireDescriptors(settings.crowd + OTHER_DESCRIPTORS);
  const reeve = await startReeveUp();
  const honest = startHonestCaller(reeve.url, reeve.token);
  try {
    const { seed, mutants, perSecond = PER_SECOND, crowd: connections } = settings;
    const shared = {
      seed,
      perSecond,
      atOnce: AT_ONCE,
      tokens: [reeve.token, "rv_000000000000_x"],
      certificates: await foreign(),
    };
    const byKind: Record<string, number> = {};
    const rssMb: number[] = [];
    const watching = watch(reeve, rssMb, (rss) =>
      settings.onProgress?.(`${sum(byKind)} of ${mutants} mutants, ${rss} MB`),
    );
    const attacked = await phase(reeve, honest, { ...shared, mutants, targets: reeve.targets, crowd: 0 }, (report) => {
      if (report.kind === "progress") Object.assign(byKind, report.done);
    });
    watching.stop();
    settings.onProgress?.(`${connections} strangers come to the registry`);
    let crowd = { connected: 0, openAfter: 0 };
    const crowded = await phase(
      reeve,
      honest,
      { ...shared, mutants: 0, targets: reeve.targets, crowd: connections },
      (report) => {
        if (report.kind === "crowd") crowd = { connected: report.connected, openAfter: report.open };
      },
    );
    await honest.stop();
    const ended = reeve.ended();
    const uncaught = reeve.uncaught();
    const log = reeve.log();
    const exitCode = await reeve.stop();
    return {
      byKind,
      mutants: sum(byKind),
      ended,
      uncaught,
      exitCode,
      rssMb,
      attack: attacked,
      crowd: { ...crowded, ...crowd },
      log,
    };
  } finally {
    await honest.stop();
    await reeve.stop();
  }
}

async function phase(
  reeve: AttackedReeve,
  honest: HonestCaller,
  attack: Attack,
  onReport: Parameters<typeof runAttack>[1],
): Promise<PhaseReport> {
  honest.take();
  const began = performance.now();
  if (reeve.ended() === undefined) await runAttack(attack, onReport);
  return { honest: honest.take(), seconds: (performance.now() - began) / 1000 };
}

function watch(reeve: AttackedReeve, rssMb: number[], say: (rssMb: number | undefined) => void): { stop(): void } {
  let seconds = 0;
  const look = async (): Promise<void> => {
    const rss = await reeve.rssMb();
    if (rss !== undefined) rssMb.push(rss);
    if (seconds++ % 5 === 0) say(rss);
  };
  const timer = setInterval(() => void look(), 1000);
  return { stop: () => clearInterval(timer) };
}

/** Certificates of another authority, which strangers may show. */
async function foreign(): Promise<{ cert: string; key: string }[]> {
  const authority = await testAuthority();
  const { cert, key } = await testMaterial(authority, device("dev-00000000000000aa"));
  return [{ cert, key }];
}

async function requireDescriptors(needed: number): Promise<void> {
  const limits = await readFile("/proc/self/limits", "utf8").catch(() => "");
  const hard = Number(/^Max open files +\S+ +(\d+)/m.exec(limits)?.[1] ?? Number.POSITIVE_INFINITY);
  if (hard >= needed) return;
  throw new Error(
    `this machine allows a process ${hard} open files, and ${needed} are needed: raise the limit (ulimit -Hn ${needed}), or ask for a smaller crowd`,
  );
}

function sum(counts: Readonly<Record<string, number>>): number {
  return Object.values(counts).reduce((total, count) => total + count, 0);
}
