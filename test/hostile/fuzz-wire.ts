import { parseArgs } from "node:util";
import { brokenBounds, reportText } from "./report.ts";
import { runHostile } from "./run-hostile.ts";

/**
 * `npm run fuzz:wire -- --mutants 300000 --rate 600 --seed 1 --crowd 10000`: hostile clients against every port of a `reeve up` of its
 * own, on loopback only. Figures go to standard output, progress to standard error. Exits with 1 where a bound is broken.
 */
const { values } = parseArgs({
  options: {
    mutants: { type: "string", default: "300000" },
    rate: { type: "string", default: "600" },
    seed: { type: "string", default: String(Date.now() % 2 ** 31) },
    crowd: { type: "string", default: "10000" },
  },
});

function whole(name: keyof typeof values): number {
  const text = values[name];
  if (!/^\d{1,9}$/.test(text)) throw new TypeError(`--${name}: ${text} is not a whole number`);
  return Number(text);
}

const settings = { mutants: whole("mutants"), perSecond: whole("rate"), seed: whole("seed"), crowd: whole("crowd") };
console.error(`seed ${settings.seed}`);
const report = await runHostile({ ...settings, onProgress: (line) => console.error(line) });
console.log(reportText(report));
const broken = brokenBounds(report, { timed: true });
for (const bound of broken) console.log(`BROKEN         ${bound}`);
if (report.ended !== undefined) console.error(report.log);
process.exitCode = broken.length === 0 ? 0 : 1;
