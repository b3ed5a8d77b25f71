import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import type { Figures } from "./measure/figures.ts";
import { measureSection } from "./measure/measure-section.ts";
import { tableOf } from "./print.ts";
import { profileCalls, splitTable } from "./profile/profile-calls.ts";
import { SECTIONS } from "./sections.ts";
import { measureStreams, type StreamFigures, streamTable } from "./streams/measure-streams.ts";

const HELP = `npm run bench [-- options]: governed calls against bare ones, side by side in one run.

  --sections L      what to measure, comma-separated. Default all:
${SECTIONS.map(({ name, title }) => `                      ${name.padEnd(8)} ${title}`).join("\n")}
                      streams  bytes/s of a stream through an attached device against a bare one
  --rounds N        rounds of every subject at every concurrency, interleaved. Default 5
  --seconds S       how long each subject runs in a round. Default 1.5
  --concurrency L   calls in flight, comma-separated. Default 1,16,64
  --bytes N         how much goes along each stream, in bytes. Default 1000000000
  --only WORDS      only subjects whose name holds one of these words, comma-separated, and what they are compared with
  --profile         instead: where the time of a governed call goes in the server's one thread, by what it does
  --out FILE        where to write the figures as JSON. Default bench/figures.json
`;

const { values } = parseArgs({
  options: {
    sections: { type: "string", default: [...SECTIONS.map(({ name }) => name), "streams"].join(",") },
    rounds: { type: "string", default: "5" },
    seconds: { type: "string", default: "1.5" },
    concurrency: { type: "string", default: "1,16,64" },
    bytes: { type: "string", default: "1000000000" },
    only: { type: "string", default: "" },
    out: { type: "string", default: join(import.meta.dirname, "figures.json") },
    profile: { type: "boolean", default: false },
    help: { type: "boolean", default: false },
  },
});

if (values.help) process.stdout.write(HELP);
else if (values.profile) await profile();
else await run();

async function profile(): Promise<void> {
  const concurrencies = values.concurrency.split(",").map(Number);
  print(splitTable(await profileCalls({ concurrencies, seconds: Number(values.seconds), onStep })));
  process.exit(0);
}

async function run(): Promise<void> {
  const wantedSections = new Set(values.sections.split(","));
  const rounds = Number(values.rounds);
  const all: Record<string, Figures[] | StreamFigures[]> = {};
  for (const section of SECTIONS.filter(({ name }) => wantedSections.has(name))) {
    const figures = await measureSection(section, {
      rounds,
      durationMs: Number(values.seconds) * 1000,
      concurrencies: values.concurrency.split(",").map(Number),
      wanted,
      onStep,
    });
    all[section.name] = figures;
    print(tableOf(`${section.name}: ${section.title}`, figures));
  }
  if (wantedSections.has("streams")) {
    const figures = await measureStreams({ rounds: Math.min(3, rounds), bytes: Number(values.bytes), wanted, onStep });
    all.streams = figures;
    print(streamTable(figures));
  }
  writeFileSync(values.out, `${JSON.stringify(all, undefined, 2)}\n`);
  process.stdout.write(`The figures as JSON: ${values.out}\n`);
  // The bare clients keep their connections; nothing is left to do for them.
  process.exit(0);
}

function wanted(name: string): boolean {
  const words = values.only.split(",").filter((word) => word !== "");
  return words.length === 0 || words.some((word) => name.includes(word));
}

function print(table: string): void {
  process.stderr.write("\r\u001b[K");
  process.stdout.write(`${table}\n\n`);
}

function onStep(text: string): void {
  process.stderr.write(`\r\u001b[K${text}`);
}
