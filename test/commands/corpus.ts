import { readFileSync } from "node:fs";
import { join } from "node:path";

/** One command of the corpus. */
export interface Entry {
  /** Its class, such as "git flags". */
  kind: string;
  text: string;
}

/** The commands of one list: "block", "ask" or "allow". A line that is a JSON string holds a text of several lines. */
export function readCorpus(name: "block" | "ask" | "allow"): Entry[] {
  const entries: Entry[] = [];
  let kind = "";
  for (const line of readFileSync(join(import.meta.dirname, `${name}.txt`), "utf8").split("\n")) {
    if (line.startsWith("## ")) kind = line.slice(3);
    else if (line !== "" && kind !== "") entries.push({ kind, text: textOf(line) });
  }
  return entries;
}

function textOf(line: string): string {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === "string" ? value : line;
  } catch {
    return line;
  }
}
