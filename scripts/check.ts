import { join } from "node:path";
import { checkBreaking } from "./check/breaking.ts";
import { staleFiles } from "./check/generated.ts";
import { machinePathUses } from "./check/machine-paths.ts";
import { runSteps } from "./check/run-steps.ts";
import { findingsStep, type Step, toolStep } from "./check/step.ts";
import { retiredWords } from "./check/words.ts";
import { staleConfiguration } from "./configuration/document.ts";
import { checkImportDirections } from "./import-directions.ts";
import { repositoryRoot } from "./repository-root.ts";
import { writeThirdParty } from "./third-party.ts";

/** Everything that can be said about the tree without running it. Changes nothing that git knows of. */
const STEPS: readonly Step[] = [
  {
    name: "protos of others",
    run: async () => {
      await writeThirdParty(join(repositoryRoot, "third_party"));
      return { kind: "passed" };
    },
  },
  toolStep("format and lint", "biome", ["check", "--error-on-warnings"]),
  toolStep("lint with types", "oxlint", []),
  toolStep("types", "tsc", ["-p", "."]),
  toolStep("proto lint", "buf", ["lint"]),
  toolStep("proto format", "buf", ["format", "proto", "--exclude-path", "proto/buf", "--diff", "--exit-code"]),
  { name: "proto breaking changes", run: () => checkBreaking() },
  findingsStep("generated code", staleFiles),
  findingsStep("documentation of settings", staleConfiguration),
  findingsStep("import directions", checkImportDirections),
  findingsStep("no paths of this machine", machinePathUses),
  findingsStep("words that are retired", retiredWords),
];

const failed = await runSteps(STEPS, console.log);
if (failed.length > 0) {
  console.error(`check failed: ${failed.join(", ")}`);
  process.exitCode = 1;
}
