import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { repositoryRoot } from "../repository-root.ts";
import { allUses, countByFolder, type Use } from "../words/uses.ts";

const ALLOWANCE = join(repositoryRoot, "scripts/words/allowance.json");

/** How many retired words a folder may still hold. One that is not named may hold none. */
export type Allowance = Readonly<Record<string, number>>;

/** The folders that hold more retired words than they may. */
export async function retiredWords(): Promise<string[]> {
  return aboveAllowance(await allUses(), await readAllowance());
}

/** One line for a folder above its allowance, followed by its uses where the folder may hold none. */
export function aboveAllowance(uses: readonly Use[], allowance: Allowance): string[] {
  return [...countByFolder(uses)].flatMap(([folder, count]) => {
    const allowed = allowance[folder] ?? 0;
    if (count <= allowed) return [];
    const list = `node scripts/check/words.ts --list ${folder}`;
    return [`${folder} holds ${count} retired words, ${allowed} are allowed: see ${list}`];
  });
}

/** The allowance lowered to what is used: never raised, and without the folders that hold none. */
export function lowered(allowance: Allowance, uses: readonly Use[]): Allowance {
  const counts = countByFolder(uses);
  const entries = Object.entries(allowance).map(([folder, allowed]) => {
    return [folder, Math.min(allowed, counts.get(folder) ?? 0)] as const;
  });
  return Object.fromEntries(entries.filter(([, allowed]) => allowed > 0));
}

/** A use as a line that an editor can jump to. */
export function useText({ path, line, word, better }: Use): string {
  return `${path}${line === 0 ? "" : `:${line}`}: "${word}" → ${better}`;
}

async function readAllowance(): Promise<Allowance> {
  return JSON.parse(await readFile(ALLOWANCE, "utf8"));
}

if (import.meta.main) {
  const { values } = parseArgs({ options: { list: { type: "string" }, lower: { type: "boolean" } } });
  const uses = await allUses();
  const allowance = await readAllowance();
  if (values.list !== undefined) {
    const prefix = values.list.replace(/^\.?\/?|\/$/g, "");
    const found = uses.filter(({ path }) => prefix === "" || path === prefix || path.startsWith(`${prefix}/`));
    for (const use of found) console.log(useText(use));
    console.log(`${found.length} retired words`);
  } else if (values.lower) {
    await writeFile(ALLOWANCE, `${JSON.stringify(lowered(allowance, uses), undefined, 2)}\n`);
  } else {
    for (const [folder, count] of countByFolder(uses))
      console.log(folder.padEnd(24), count, "of", allowance[folder] ?? 0);
    const problems = aboveAllowance(uses, allowance);
    for (const problem of problems) console.error(problem);
    if (problems.length > 0) process.exitCode = 1;
  }
}
