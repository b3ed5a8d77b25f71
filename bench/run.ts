import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { drive } from "./measure/drive.ts";
import { type Figures, figuresOf, type Round } from "./measure/figures.ts";
import { type ServerProcess, startServer } from "./measure/server-process.ts";
import { printTable } from "./print.ts";
import { connectSubject, mcpSubjects, plainHttpSubjects, spawnSubject } from "./subjects/bare.ts";
import { governedSubjects } from "./subjects/governed.ts";
import type { Subject } from "./subjects/subject.ts";

const HELP = `npm run bench [-- options]: governed calls against bare ones, side by side in one run.

  --rounds N        rounds of every subject at every concurrency, interleaved. Default 5
  --seconds S       how long each subject runs in a round. Default 1.5
  --concurrency L   calls in flight, comma-separated. Default 1,16,64
  --only WORDS      only subjects whose name holds one of these words, comma-separated
  --out FILE        where to write the figures as JSON. Default bench/figures.json
`;

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "5" },
    seconds: { type: "string", default: "1.5" },
    concurrency: { type: "string", default: "1,16,64" },
    only: { type: "string", default: "" },
    out: { type: "string", default: join(import.meta.dirname, "figures.json") },
    help: { type: "boolean", default: false },
  },
});

if (values.help) process.stdout.write(HELP);
else await run();

async function run(): Promise<void> {
  const servers: ServerProcess[] = [];
  try {
    const subjects = (await openSubjects(servers)).filter(wanted);
    const figures = await measure(subjects);
    printTable(figures);
    writeFileSync(values.out, `${JSON.stringify(figures, undefined, 2)}\n`);
    process.stdout.write(`\nThe figures as JSON: ${values.out}\n`);
  } finally {
    await Promise.all(servers.map((server) => server.stop()));
  }
  // The bare clients keep their connections; nothing is left to do for them.
  process.exit(0);
}

async function openSubjects(servers: ServerProcess[]): Promise<Subject[]> {
  const start = async (name: string) => {
    const server = await startServer(name);
    servers.push(server);
    return server;
  };
  return [
    ...(await mcpSubjects(await start("mcp"))),
    ...governedSubjects(await start("governed")),
    ...plainHttpSubjects(await start("plain-http")),
    connectSubject(await start("connect")),
    spawnSubject(),
  ];
}

function wanted({ name }: Subject): boolean {
  const words = values.only.split(",").filter((word) => word !== "");
  return words.length === 0 || words.some((word) => name.includes(word));
}

/** Round by round, each subject in turn, so that a machine that grows slower is slower for all. */
async function measure(subjects: readonly Subject[]): Promise<Figures[]> {
  const rounds = Number(values.rounds);
  const durationMs = Number(values.seconds) * 1000;
  const all = new Map<string, Round[]>();
  const concurrencies = values.concurrency.split(",").map(Number);
  for (const subject of subjects) await drive(() => subject.call(), 8, Math.min(1000, durationMs));
  for (let round = 0; round < rounds; round++) {
    for (const concurrency of concurrencies) {
      for (const subject of subjects) {
        process.stderr.write(`\rround ${round + 1}/${rounds}  ${concurrency} in flight  ${subject.name.padEnd(24)}`);
        const key = JSON.stringify([subject.name, concurrency]);
        all.set(key, [...(all.get(key) ?? []), await measureOne(subject, concurrency, durationMs)]);
      }
    }
  }
  process.stderr.write("\r\u001b[K");
  return concurrencies.flatMap((concurrency) =>
    subjects.map(({ name }) => figuresOf(name, concurrency, all.get(JSON.stringify([name, concurrency])) ?? [])),
  );
}

async function measureOne(subject: Subject, concurrency: number, durationMs: number): Promise<Round> {
  const before = await subject.usage();
  const own = process.cpuUsage();
  const sample = await drive(() => subject.call(), concurrency, durationMs);
  const spent = process.cpuUsage(own);
  const after = await subject.usage();
  return { sample, cpuUs: after.cpuUs - before.cpuUs + spent.user + spent.system, rssBytes: after.rssBytes };
}
