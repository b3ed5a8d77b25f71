import type { Section, Subject } from "../subjects/subject.ts";
import { drive } from "./drive.ts";
import { type Figures, figuresOf, type Round } from "./figures.ts";

/** How sections are measured. */
export interface MeasureOptions {
  rounds: number;
  /** How long each subject runs in a round, in milliseconds. */
  durationMs: number;
  /** How many calls are in flight. */
  concurrencies: readonly number[];
  /** Which subjects are wanted. One that a wanted one is compared with is measured as well. */
  wanted(name: string): boolean;
  /** Gets each step in words. */
  onStep(text: string): void;
}

/** Starts what a section needs, measures it round by round, and ends it. */
export async function measureSection(section: Section, options: MeasureOptions): Promise<Figures[]> {
  await using parts = new AsyncDisposableStack();
  options.onStep(`${section.name}: starting`);
  const all = await section.open(parts, (text) => options.onStep(`${section.name}: ${text}`));
  const asked = all.filter(({ name }) => options.wanted(name));
  const subjects = all.filter((one) => asked.includes(one) || asked.some(({ against }) => against?.includes(one.name)));
  // Waited for here: the section would end under it otherwise.
  return await measure(subjects, { ...options, onStep: (text) => options.onStep(`${section.name}: ${text}`) });
}

/** Each subject in turn, so that a machine that grows slower is slower for all. */
async function measure(subjects: readonly Subject[], options: MeasureOptions): Promise<Figures[]> {
  const { rounds, durationMs, concurrencies, onStep } = options;
  const all = new Map<string, Round[]>();
  const keyOf = (subject: Subject, concurrency: number) => JSON.stringify([subject.name, concurrency]);
  for (const subject of subjects) await drive(() => subject.call(), 8, Math.min(1000, durationMs));
  for (let round = 0; round < rounds; round++) {
    for (const concurrency of concurrencies) {
      for (const subject of subjects) {
        onStep(`round ${round + 1}/${rounds}  ${concurrency} in flight  ${subject.name}`);
        const key = keyOf(subject, concurrency);
        all.set(key, [...(all.get(key) ?? []), await measureOne(subject, concurrency, durationMs)]);
      }
    }
  }
  return concurrencies.flatMap((concurrency) =>
    subjects.map((subject) => figuresOf(subject, concurrency, all.get(keyOf(subject, concurrency)) ?? [])),
  );
}

async function measureOne(subject: Subject, concurrency: number, durationMs: number): Promise<Round> {
  const before = await usageOf(subject);
  const own = process.cpuUsage();
  const sample = await drive(() => subject.call(), concurrency, durationMs);
  const spent = process.cpuUsage(own);
  const after = await usageOf(subject);
  const serverCpuUs = after.cpuUs - before.cpuUs;
  return { sample, cpuUs: serverCpuUs + spent.user + spent.system, serverCpuUs, rssBytes: after.rssBytes };
}

async function usageOf({ usage }: Subject) {
  return (await usage?.()) ?? { cpuUs: 0, rssBytes: 0 };
}
