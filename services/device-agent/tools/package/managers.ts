import { type FoundPackage, parseApk, parseApt, parseBrew, parseDnf, parsePacman } from "./parse.ts";

/** One package manager: how it is asked, and how its answers read. Pure. */
export interface PackageManager {
  name: "apt" | "dnf" | "apk" | "pacman" | "brew";
  /** The program that installs. */
  installer: string;
  /** The program that searches. */
  searcher: string;
  /** Variables that keep it from asking. */
  env: Readonly<Record<string, string>>;
  install(packages: readonly string[], dryRun: boolean): string[];
  search(words: readonly string[]): string[];
  parse(output: string): FoundPackage[];
  /** The exit code of a search that found nothing. */
  nothingFound: number;
}

/** The package managers that are known, in the order in which a machine is asked for them. */
export const PACKAGE_MANAGERS: readonly PackageManager[] = [
  {
    name: "apt",
    installer: "apt-get",
    searcher: "apt-cache",
    env: { DEBIAN_FRONTEND: "noninteractive", APT_LISTCHANGES_FRONTEND: "none", NEEDRESTART_MODE: "l" },
    // Without --no-remove an install may take away what it conflicts with.
    install: (packages, dryRun) => [
      "apt-get",
      "install",
      "-y",
      "--no-remove",
      ...when(dryRun, "-s"),
      "--",
      ...packages,
    ],
    // apt-cache reads words as regular expressions; a character class takes the meaning from "+" and ".".
    search: (words) => ["apt-cache", "search", "--", ...words.map((word) => word.replace(/[+.]/g, "[$&]"))],
    parse: parseApt,
    nothingFound: 0,
  },
  {
    name: "dnf",
    installer: "dnf",
    searcher: "dnf",
    env: {},
    install: (packages, dryRun) => ["dnf", "install", dryRun ? "--assumeno" : "-y", "--", ...packages],
    search: (words) => ["dnf", "-q", "search", "--", ...words],
    parse: parseDnf,
    nothingFound: 1,
  },
  {
    name: "apk",
    installer: "apk",
    searcher: "apk",
    env: {},
    install: (packages, dryRun) => ["apk", "add", "--no-interactive", ...when(dryRun, "--simulate"), "--", ...packages],
    search: (words) => ["apk", "search", "-v", "-d", "--", ...words],
    parse: parseApk,
    nothingFound: 0,
  },
  {
    name: "pacman",
    installer: "pacman",
    searcher: "pacman",
    env: {},
    install: (packages, dryRun) => [
      "pacman",
      "-S",
      "--noconfirm",
      "--needed",
      ...when(dryRun, "--print"),
      "--",
      ...packages,
    ],
    search: (words) => [
      "pacman",
      "-Ss",
      "--color",
      "never",
      "--",
      ...words.map((word) => word.replace(/[+.]/g, "\\$&")),
    ],
    parse: parsePacman,
    nothingFound: 1,
  },
  {
    name: "brew",
    installer: "brew",
    searcher: "brew",
    env: { HOMEBREW_NO_AUTO_UPDATE: "1", HOMEBREW_NO_ENV_HINTS: "1", NONINTERACTIVE: "1" },
    install: (packages, dryRun) => ["brew", "install", ...when(dryRun, "--dry-run"), "--", ...packages],
    search: (words) => ["brew", "search", "--", words.join(" ")],
    parse: parseBrew,
    nothingFound: 1,
  },
];

function when(condition: boolean, option: string): string[] {
  return condition ? [option] : [];
}
