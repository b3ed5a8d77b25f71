import { commandsOf, type Plan } from "../plan/plan.ts";
import { containerRules } from "./tables/containers.ts";
import { hardwareRules } from "./tables/hardware.ts";
import { networkRules } from "./tables/network.ts";
import { packageRules } from "./tables/packages.ts";
import { systemRules } from "./tables/system.ts";

/**
 * What the answer of a plan is about: files, or the machine with its processes, services, packages and network. A sandbox
 * does not show those, so what runs in one would answer of the sandbox.
 */
export type Subject = "files" | "machine";

/** Programs of the tables about the machine whose answer is the same inside a sandbox. */
const SAME_INSIDE = new Set(
  (
    "pwd true false test [ sleep cal ncal date uname arch nproc getconf locale " +
    "node ruby perl php deno bun yarn pnpm tsc cmake lua python python2 python3 go openssl java"
  ).split(" "),
);

const ABOUT_MACHINE = new Set(
  [...systemRules, ...hardwareRules, ...networkRules, ...containerRules, ...packageRules]
    .flatMap(({ program }) => program.split(" "))
    .filter((name) => !SAME_INSIDE.has(name))
    // In the table of files, since it takes paths.
    .concat("df"),
);

/** The subject of a plan: the machine's as soon as one of its commands is about it. Pure. */
export function subjectOf(plan: Plan): Subject {
  const isOfMachine = commandsOf(plan).some(({ exe }) => ABOUT_MACHINE.has(exe.slice(exe.lastIndexOf("/") + 1)));
  return isOfMachine ? "machine" : "files";
}
