import { parseArgs } from "node:util";
import { findDifferences } from "./differences.ts";

/** `npm run fuzz:shell -- --mutants N --seed S`: looks for texts that are allowed and run something else in bash. */
const { values } = parseArgs({
  options: { mutants: { type: "string", default: "100000" }, seed: { type: "string", default: "1" } },
});
const { mutants, allowed, found } = await findDifferences(Number(values.mutants), Number(values.seed));
for (const { text, ran } of found) process.stdout.write(`${JSON.stringify({ text, ran })}\n`);
process.stdout.write(
  `${mutants} mutants, ${allowed} allowed and run in bash, ${found.length} differences (seed ${values.seed})\n`,
);
if (found.length > 0) process.exitCode = 1;
