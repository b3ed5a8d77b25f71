import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { repositoryRoot } from "./repository-root.ts";

/** The file in dist/ with the licenses of everything that is shipped with it. */
export const NOTICES_FILE = "THIRD-PARTY-NOTICES.txt";

/** Between the packages in that file. */
export const NOTICES_RULE = `\n\n${"=".repeat(100)}\n\n`;

interface Package {
  readonly path: string;
  readonly name: string;
  readonly version: string;
  readonly license: string;
  readonly holder: string;
}

interface LockEntry {
  dev?: boolean;
  optional?: boolean;
  devOptional?: boolean;
}

/**
 * The license of each production package: the texts that it ships (LICENSE, NOTICE, COPYING), otherwise the standard text
 * of the license that its package.json names, because most licenses must travel with every copy.
 *
 * @throws Error naming a package whose license has neither a file nor a standard text here.
 */
export function noticesText(): string {
  const sections = productionPackages().map((one) => {
    const texts = shippedTexts(one.path);
    const body = texts.length > 0 ? texts : standardTexts(one);
    return [`${one.name} ${one.version} (${one.license})`, ...body].join("\n\n");
  });
  return `${sections.join(NOTICES_RULE)}\n`;
}

/** The packages that `npm ci --omit=dev --omit=optional` installs, by the lock file. */
export function productionPackages(): Package[] {
  const lock = JSON.parse(readFileSync(join(repositoryRoot, "package-lock.json"), "utf8")) as {
    packages: Record<string, LockEntry>;
  };
  return Object.entries(lock.packages)
    .filter(([path, { dev, optional, devOptional }]) => path !== "" && !dev && !optional && !devOptional)
    .map(([path]) => describe(join(repositoryRoot, path)));
}

function describe(path: string): Package {
  const { name, version, license, author } = JSON.parse(readFileSync(join(path, "package.json"), "utf8")) as {
    name: string;
    version: string;
    license?: string;
    author?: string | { name: string };
  };
  const holder = typeof author === "string" ? author.replace(/\s*<.*$/, "") : author?.name;
  return { path, name, version, license: license ?? "not stated", holder: holder ?? `the authors of ${name}` };
}

function shippedTexts(path: string): string[] {
  return readdirSync(path)
    .filter((file) => /^(licen[cs]e|copying|notice|unlicense)/i.test(file))
    .sort()
    .map((file) => readFileSync(join(path, file), "utf8").trim());
}

/** "(Apache-2.0 AND BSD-3-Clause)" needs both texts. */
function standardTexts({ name, license, holder }: Package): string[] {
  return license
    .replace(/[()]/g, "")
    .split(" AND ")
    .map((id) => {
      const text = STANDARD_TEXTS.get(id);
      if (text === undefined)
        throw new Error(`${name}: no text of the license ${JSON.stringify(id)} in scripts/licenses`);
      return id === "Apache-2.0" ? text() : `Copyright (c) ${holder}\n\n${text()}`;
    });
}

const STANDARD_TEXTS = new Map([
  ["Apache-2.0", () => textOf("LICENSE")],
  ["MIT", () => textOf("scripts/licenses/MIT.txt")],
  ["BSD-3-Clause", () => textOf("scripts/licenses/BSD-3-Clause.txt")],
]);

function textOf(path: string): string {
  return readFileSync(join(repositoryRoot, path), "utf8").trim();
}
