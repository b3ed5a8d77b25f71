import type { JsonObject } from "@bufbuild/protobuf";
import { digestOf } from "../sign/canonical.ts";
import { namesOf, textOf, wordsOf } from "../tool/command-problems.ts";
import { type CommandFields, commandsIn } from "../tool/commands.ts";
import type { JsonSchema } from "../tool/json-schema.ts";
import { pathProblem } from "./allow/paths.ts";
import { type Analysis, analyzeArgv, analyzeText, type Place, type Reason, type Verdict } from "./analyze.ts";
import type { Plan } from "./plan/plan.ts";

/** What the commands in a call's arguments come to, all of them together. */
export interface CallAnalysis {
  /** The strictest of them; "none" where the call has no command. */
  verdict: Verdict | "none";
  reasons: readonly Reason[];
  /** What is executed where the verdict is "allow". */
  plan?: Plan;
}

/** What an analysis has to know of the device. */
export interface DeviceFolders {
  /** The folders that may be read. */
  roots: readonly string[];
  /** Where a command runs whose call does not say it. Undefined: it is not known, only that it is one of the roots. */
  workDir?: string | undefined;
  /** Its operating system and architecture, such as "linux/x64". Default: one whose commands are looked at. */
  platform?: string | undefined;
}

const NONE: CallAnalysis = { verdict: "none", reasons: [] };

/** The verdicts, the strictest first. */
const ORDER: readonly Verdict[] = ["block", "reject", "ask", "allow"];

/** With more roots than this, a command with relative paths has to say where it runs. */
const MOST_ROOTS = 8;

/**
 * Analyzes every command in a call's arguments, as the tool's schema marks its fields. A verdict "allow" is of a single command that
 * the device itself runs, with the environment that the device gives it, in a folder that may be read. Pure; never throws.
 */
export function analyzeCall(schema: JsonSchema, args: JsonObject, device: DeviceFolders): CallAnalysis {
  const analyses = commandsIn(schema, args).flatMap((command) => analysesOf(command, device));
  const [first, ...others] = analyses;
  if (first === undefined) return NONE;
  const found = others.reduce(stricter, first);
  if (isWindows(device))
    return withoutPlan(found, "command/windows", "runs on Windows, where other programs have these names");
  return others.length > 0 ? withoutPlan(found, "command/several", "is one of several commands of a call") : found;
}

/** The same, but for a person to decide where it would be allowed. Pure. */
export function withoutPlan<A extends CallAnalysis>(analysis: A, rule: string, message: string): A | Analysis {
  return analysis.verdict === "allow" ? { verdict: "ask", reasons: [{ rule, message }] } : analysis;
}

/** The digest by which a grant names the plan that is to be executed. */
export function planDigest(plan: Plan): string {
  return digestOf(JSON.parse(JSON.stringify(plan)));
}

/** Its shell is PowerShell, and what its programs do with their arguments is in no table. */
function isWindows({ platform = "" }: DeviceFolders): boolean {
  return platform.startsWith("win32");
}

function stricter(one: Analysis, other: Analysis): Analysis {
  return ORDER.indexOf(other.verdict) < ORDER.indexOf(one.verdict) ? other : one;
}

function analysesOf({ argv, foreign_argv: foreign, shell, ...rest }: CommandFields, device: DeviceFolders): Analysis[] {
  const folder = textOf(rest.folder);
  const stdin = textOf(rest.stdin) || undefined;
  const analyses: Analysis[] = [];
  if (argv !== undefined) {
    const words = wordsOf(argv.value);
    analyses.push(onDevice(folder, device, (place) => analyzeArgv(words, { ...place, ...(stdin && { stdin }) })));
  }
  if (foreign !== undefined) {
    const found = analyzeArgv(wordsOf(foreign.value), { cwd: folder || undefined, ...(stdin && { stdin }) });
    analyses.push(withoutPlan(found, "command/elsewhere", "runs elsewhere than on the device itself"));
  }
  if (shell !== undefined) {
    const text = textOf(shell);
    analyses.push(onDevice(folder, device, (place) => analyzeText(text, place)));
  }
  if (namesOf(rest.environment?.value).length === 0) return analyses;
  return analyses.map((found) => withoutPlan(found, "command/environment", "sets variables of its environment"));
}

/** Where the folder is not known, what is allowed has to be so in each that it may be. */
function onDevice(folder: string, { roots, workDir }: DeviceFolders, analyze: (place: Place) => Analysis): Analysis {
  const cwd = folder || workDir;
  if (cwd !== undefined) {
    const problem = pathProblem(cwd, "name", { roots });
    const found = analyze({ cwd, roots });
    return problem === undefined
      ? found
      : withoutPlan(found, "command/folder", `runs where it may not read: ${problem}`);
  }
  const found = analyze({ roots });
  if (found.verdict !== "ask" || roots.length === 0 || roots.length > MOST_ROOTS) return found;
  let last = found;
  for (const root of roots) {
    last = analyze({ cwd: root, roots });
    if (last.verdict !== "allow") return last.verdict === "ask" ? last : found;
  }
  return last;
}
