import { unwrapObject } from "../../lib/model-tools/envelope.ts";
import { providerName } from "../../lib/model-tools/names.ts";
import { shellWord } from "../../lib/programs/shell-word.ts";
import { type DiskFacts, reportText } from "./demo-report.ts";
import type { ScriptedTurn, Seen, SeenResult } from "./scripted-model/script.ts";

/** Where the demonstration looks and writes. */
export interface DemoOptions {
  /** The folder that is measured: an absolute path, small enough for `du` to be quick. */
  folder: string;
  /** The report: an absolute path in a folder that may be written to. Must not exist yet. */
  reportPath: string;
}

/** What the user asks, of a scripted model and of a real one. */
export function demoPrompt({ folder, reportPath }: DemoOptions): string {
  return (
    `Find what fills this machine's disk and write a short report to ${reportPath}. ` +
    `Measure file systems as a whole, and single files and folders only inside ${folder}, so that it is quick.`
  );
}

const EXEC = providerName("exec");
const EVAL = providerName("shell.eval");
const LIST = providerName("fs.list");
const WRITE = providerName("fs.write");

/**
 * The turns of the scripted model for `demoPrompt`. It measures with exec, fs.list and shell.eval (which a human must
 * approve), tries a destructive command that policy blocks, and writes a report of what the calls really returned.
 */
export function demoTurns({ folder, reportPath }: DemoOptions): readonly ScriptedTurn[] {
  return [
    {
      text: "I will look at the file systems first.",
      toolUses: [{ name: EXEC, input: { argv: ["df", "-k"] } }],
    },
    {
      text: `Now what lies in ${folder}, and how large each part is.`,
      toolUses: [
        { name: LIST, input: { path: folder } },
        { name: EXEC, input: { argv: ["du", "-k", "-d", "1", folder] } },
      ],
    },
    {
      text: "To see the largest files I go through all parts in a loop, and a loop needs a person's approval.",
      toolUses: [{ name: EVAL, input: { command: largestIn(folder) } }],
    },
    {
      text: "Deleting everything would free the disk.",
      toolUses: [{ name: EVAL, input: { command: "rm -rf /" } }],
    },
    {
      text: (seen) => reaction(at(seen, 4)),
      toolUses: [
        {
          name: WRITE,
          input: (seen) => ({ path: reportPath, text: reportText(factsOf(seen, folder)), mode: "WRITE_MODE_CREATE" }),
        },
      ],
    },
    { text: (seen) => lastWords(at(seen, 5), reportPath) },
  ];
}

/** The results come in the order of the turns: df, list, du, the pipe, the destructive command, the report. */
function factsOf(seen: Seen, folder: string): DiskFacts {
  return {
    folder,
    df: printed(at(seen, 0)),
    entries: entries(at(seen, 1)),
    du: printed(at(seen, 2)),
    largest: printed(at(seen, 3)),
    refused: firstLine(at(seen, 4)),
  };
}

function at(seen: Seen, index: number): SeenResult {
  const result = seen.results[index];
  if (result === undefined) throw new Error(`the conversation has no tool result ${index}`);
  return result;
}

function printed(result: SeenResult): { text: string } | { error: string } {
  if (result.isError) return { error: firstLine(result) };
  const stdout = unwrapObject(result.content)?.stdout;
  return { text: typeof stdout === "string" ? stdout : "" };
}

function entries(result: SeenResult): number | undefined {
  const list = result.isError ? undefined : (unwrapObject(result.content)?.entries ?? []);
  return Array.isArray(list) ? list.length : undefined;
}

function reaction(result: SeenResult): string {
  if (!result.isError) throw new Error("the destructive command was not refused");
  return `That was refused (${firstLine(result)}). I will not do that; I only write down what was measured.`;
}

function lastWords(result: SeenResult, reportPath: string): string {
  if (result.isError) return `The report could not be written: ${firstLine(result)}`;
  return `The report is in ${reportPath}. It names what is largest; nothing was deleted.`;
}

function firstLine(result: SeenResult): string {
  return result.content.split("\n", 1)[0] ?? "";
}

/** Text with a loop, of which no plan can be made. */
function largestIn(folder: string): string {
  return `for part in ${shellWord(folder)}/*; do du -ah "$part"; done | sort -rh | head -n 10`;
}
