/** What a command printed, or why it did not. */
export type Printed = { text: string } | { error: string };

/** What was measured for a report about a disk. */
export interface DiskFacts {
  /** The folder that was looked into. */
  folder: string;
  /** What `df -k` printed. */
  df: Printed;
  /** How many entries the folder has. Undefined where it could not be listed. */
  entries: number | undefined;
  /** What `du -k -d 1` printed of the folder. */
  du: Printed;
  /** What `du -ah | sort -rh | head` printed of the folder. */
  largest: Printed;
  /** How a destructive command was refused. */
  refused: string;
}

/** A short report in Markdown of what was measured. What was not measured says why. */
export function reportText(facts: DiskFacts): string {
  return [
    "# What fills the disk",
    "## File systems",
    section(facts.df, (text) => table(["Mounted on", "Size", "Used", "Full"], fileSystems(text))),
    `## ${facts.folder}`,
    facts.entries === undefined ? "It could not be listed." : `It has ${facts.entries} entries. The largest folders:`,
    section(facts.du, (text) => table(["Folder", "Size"], folders(text))),
    "The largest files and folders, at any depth:",
    section(facts.largest, (text) => `\`\`\`\n${text.trimEnd()}\n\`\`\``),
    "## Not done",
    `Nothing was deleted. A destructive command was refused: ${facts.refused}\n`,
  ].join("\n\n");
}

function section(printed: Printed, show: (text: string) => string): string {
  return "error" in printed ? `Not measured: ${printed.error}` : show(printed.text);
}

/** The five that use the most. Columns differ between systems; the first three and the last one do not. */
function fileSystems(df: string): string[][] {
  return rows(df)
    .map((columns) => ({
      mount: columns.at(-1) ?? "",
      kib: Number(columns[1]),
      used: Number(columns[2]),
      full: columns.find((column) => column.endsWith("%")) ?? "",
    }))
    .filter(({ kib, used }) => kib > 0 && used > 0)
    .sort((a, b) => b.used - a.used)
    .slice(0, 5)
    .map(({ mount, kib, used, full }) => [mount, size(kib), size(used), full]);
}

function folders(du: string): string[][] {
  return rows(du)
    .map(([kib = "", ...path]) => ({ kib: Number(kib), path: path.join(" ") }))
    .filter(({ kib }) => kib >= 0)
    .sort((a, b) => b.kib - a.kib)
    .slice(0, 10)
    .map(({ kib, path }) => [path, size(kib)]);
}

function rows(text: string): string[][] {
  return text
    .split("\n")
    .map((line) => line.trim().split(/\s+/u))
    .filter((columns) => columns.length > 1);
}

function size(kib: number): string {
  const units = ["KiB", "MiB", "GiB", "TiB"];
  const power = Math.min(units.length - 1, Math.floor(Math.log(Math.max(kib, 1)) / Math.log(1024)));
  return `${(kib / 1024 ** power).toFixed(power === 0 ? 0 : 1)} ${units[power]}`;
}

function table(head: string[], body: string[][]): string {
  const line = (cells: string[]) => `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
  return [line(head), line(head.map(() => "---")), ...body.map(line)].join("\n");
}
