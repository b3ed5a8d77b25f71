export interface FoundPackage {
  name: string;
  /** One line about it. Empty where the manager gives none. */
  summary: string;
}

/** "name - summary", one a line. */
export function parseApt(output: string): FoundPackage[] {
  return lines(output).map((line) => split(line, " - "));
}

/** "name.arch : summary", under headings of "=", or "name.arch<TAB>summary" in dnf 5. */
export function parseDnf(output: string): FoundPackage[] {
  const found = lines(output).flatMap((line): FoundPackage[] => {
    const match = /^\s*(\S+)\.(?:noarch|x86_64|i686|aarch64|armv7hl|ppc64le|s390x|src|riscv64)\s*(?::|\t)\s*(.*)$/.exec(
      line,
    );
    return match === null ? [] : [{ name: match[1] ?? "", summary: match[2] ?? "" }];
  });
  // A package of two architectures, or under two headings, is one package.
  return [...new Map(found.map((each) => [each.name, each])).values()];
}

/** "name-version-rN - summary". */
export function parseApk(output: string): FoundPackage[] {
  return lines(output).map((line) => {
    const { name, summary } = split(line, " - ");
    return { name: name.replace(/-[^-]+-r\d+$/, ""), summary };
  });
}

/** "repository/name version [installed]", with the summary on the next line, indented. */
export function parsePacman(output: string): FoundPackage[] {
  const found: FoundPackage[] = [];
  for (const line of lines(output)) {
    const last = found.at(-1);
    if (/^\s/.test(line) && last !== undefined) last.summary = `${last.summary} ${line.trim()}`.trim();
    else found.push({ name: line.replace(/^\S*\//, "").split(" ")[0] ?? "", summary: "" });
  }
  return found;
}

/** Names, several a line, under headings of "==>". brew gives no summaries. */
export function parseBrew(output: string): FoundPackage[] {
  const names = lines(output).filter((line) => !line.startsWith("==>"));
  return names
    .flatMap((line) => line.split(/\s+/))
    .filter((name) => /^[\w@+./-]+$/.test(name))
    .map((name) => ({ name, summary: "" }));
}

function lines(output: string): string[] {
  return output.split("\n").filter((line) => line.trim() !== "");
}

function split(line: string, separator: string): FoundPackage {
  const at = line.indexOf(separator);
  if (at < 0) return { name: line.trim(), summary: "" };
  return { name: line.slice(0, at).trim(), summary: line.slice(at + separator.length).trim() };
}

/** A package that an install would bring. */
export interface PackageChange {
  name: string;
  version: string;
  /** The version that is installed now; empty where none is. */
  old: string;
}

/** The lines "Inst name [old] (version repository [architecture])" of apt-get -s. */
export function parseAptSimulation(output: string): PackageChange[] {
  return lines(output).flatMap((line) => {
    const [, name, old = "", version] = /^Inst (\S+) (?:\[([^\]]*)\] )?\((\S+)/.exec(line) ?? [];
    return name === undefined || version === undefined ? [] : [{ name, version, old }];
  });
}

/** How many bytes are fetched for each package, by "name=version", from apt-cache show. */
export function parseAptSizes(output: string): Map<string, number> {
  const sizes = new Map<string, number>();
  for (const record of output.split(/\n\n+/)) {
    const field = (name: string) => new RegExp(`^${name}: *(.*)$`, "m").exec(record)?.[1];
    const [name, version, size] = [field("Package"), field("Version"), Number(field("Size") ?? Number.NaN)];
    if (name !== undefined && version !== undefined && Number.isFinite(size)) sizes.set(`${name}=${version}`, size);
  }
  return sizes;
}
