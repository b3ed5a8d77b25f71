import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import type { FleetFigures } from "./fleet/figures.ts";
import { measureFleet } from "./fleet/measure-fleet.ts";
import { fleetTable } from "./fleet/print-fleet.ts";

const HELP = `npm run bench:fleet [-- options]: what many devices cost one registry. Simulated devices with keys and
certificates of their own attach to it by mTLS on this machine, and are called; then it is killed and started again.

  --sizes L         how many devices, comma-separated. Default 10,100,1000
  --database D      sqlite or postgres. Default sqlite
  --drivers N       processes that hold the devices. Default 8
  --concurrency N   calls in flight, spread over all devices. Default 64
  --seconds S       how long calls are made, as single RPCs and again on a stream. Default 5
  --idle S          how long the idle fleet is watched. Default 10
  --profile DIR     writes the registry's processor profiles there
  --out FILE        where to write the figures as JSON. Default bench/fleet-figures.json
`;

const { values } = parseArgs({
  options: {
    sizes: { type: "string", default: "10,100,1000" },
    database: { type: "string", default: "sqlite" },
    drivers: { type: "string", default: "8" },
    concurrency: { type: "string", default: "64" },
    seconds: { type: "string", default: "5" },
    idle: { type: "string", default: "10" },
    profile: { type: "string" },
    out: { type: "string", default: join(import.meta.dirname, "fleet-figures.json") },
    help: { type: "boolean", default: false },
  },
});

if (values.help) process.stdout.write(HELP);
else await run();

async function run(): Promise<void> {
  const { database, profile } = values;
  if (database !== "sqlite" && database !== "postgres") throw new Error("--database is sqlite or postgres");
  const figures: FleetFigures[] = [];
  try {
    for (const size of values.sizes.split(",").map(Number)) {
      figures.push(
        await measureFleet(size, {
          database,
          drivers: Number(values.drivers),
          concurrency: Number(values.concurrency),
          callMs: Number(values.seconds) * 1000,
          idleMs: Number(values.idle) * 1000,
          env: profile === undefined ? {} : { NODE_OPTIONS: `--cpu-prof --cpu-prof-dir=${profile}` },
          onStep: (text) => process.stderr.write(`\r\u001b[K${size} devices: ${text}`),
        }),
      );
    }
  } finally {
    // Also where a later size has failed.
    report(figures);
  }
}

function report(figures: readonly FleetFigures[]): void {
  process.stderr.write("\r\u001b[K");
  process.stdout.write(`${fleetTable(figures)}\n`);
  writeFileSync(values.out, `${JSON.stringify(figures, undefined, 2)}\n`);
  process.stdout.write(`\nThe figures as JSON: ${values.out}\n`);
}
