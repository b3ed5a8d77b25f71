import { asksToRead } from "../../paths/asked-paths.ts";
import { isHidden } from "../../paths/hidden-paths.ts";
import { namesBelow, namesOf } from "../../paths/names.ts";
import { globMatches } from "../block/targets.ts";
import type { PlanWord } from "../plan/plan.ts";

/** Where a command runs, as far as it matters for paths. */
export interface Place {
  /** The folder it runs in: absolute, or below the home folder ("~/x"). Undefined where it is not known. */
  cwd?: string | undefined;
  /** The folders that may be read. Undefined: all. */
  roots?: readonly string[] | undefined;
}

/** How a path is used: its content is read, its name and size, or everything below it. */
export type PathUse = "read" | "name" | "tree";

/** Why a path may not be read without a person being asked; undefined where it may. Pure: no disk is looked at. */
export function pathProblem(word: PlanWord, use: PathUse, { cwd, roots }: Place): string | undefined {
  const path = absolute(word, cwd);
  const shown = JSON.stringify(textOf(word));
  const names = path.split("/").filter((name) => name !== "" && name !== ".");
  const plain = resolved(names);
  if (candidates(plain).some(asksToRead) || candidates(names).some(asksToRead)) return `${shown} may be a secret`;
  if (use !== "name" && plain[0] === "dev" && plain.join("/") !== "dev/null") return `${shown} is a device`;
  const isKnown = path.startsWith("/") || path.startsWith("~");
  if (use === "tree" && (isKnown ? HOLDS_SECRETS.test(`/${plain.join("/")}`) : names[0] === ".."))
    return `${shown} holds secrets somewhere below it`;
  if (roots !== undefined && !isWithin(path, names, roots)) return `${shown} is not in a folder that may be read`;
  return undefined;
}

/** Folders below which there are secrets on any machine. */
const HOLDS_SECRETS = /^\/(?:|~|(?:etc|home|root|proc|run|sys|Users|var|private\/etc|var\/run)|(?:home|Users)\/[^/]+)$/;

function isWithin(path: string, names: readonly string[], roots: readonly string[]): boolean {
  if (!path.startsWith("/") || names.includes("..")) return false;
  const real = namesOf(path);
  return real !== undefined && namesBelow(real, roots) !== undefined && !isHidden(path, roots);
}

function absolute(word: PlanWord, cwd: string | undefined): string {
  if (typeof word === "object" && "home" in word) return `~${word.home}`;
  const text = textOf(word);
  return text.startsWith("/") || cwd === undefined ? text : `${cwd}/${text}`;
}

function textOf(word: PlanWord): string {
  if (typeof word === "string") return word;
  return "home" in word ? `~${word.home}` : word.glob;
}

function resolved(names: readonly string[]): string[] {
  const path: string[] = [];
  for (const name of names) {
    if (name === "..") path.pop();
    else path.push(name);
  }
  return path;
}

/** Names of folders with secret things, for patterns that may stand for them. */
const FOLDERS =
  ".ssh .aws .gnupg .azure .kube .docker .config .mozilla .password-store .claude etc proc self private ssl ssh gcloud gh".split(
    " ",
  );

/** Names of secret files, the same. */
const FILES =
  `${FOLDERS.join(" ")} .env .env.local .netrc .npmrc .pypirc .pgpass .bash_history .zsh_history .git-credentials
  .claude.json .vault-token id_rsa id_ed25519 id_ecdsa id_dsa shadow shadow- gshadow sudoers environ mem fd root cwd exe
  kcore ssh_host_rsa_key server.key server.pem credentials credentials.json secrets.yml secrets.json token password
  terraform.tfstate key.p12 key.pfx config config.json auth.json wallet.dat`.split(/\s+/);

/** Names that are secret in certain folders only. */
const PLACED = [
  ...FOLDERS,
  ..."shadow gshadow sudoers environ mem fd root cwd exe kcore config config.json auth.json".split(" "),
];

const MOST_CANDIDATES = 512;

/** The paths that one with patterns in it may stand for, of those that matter. Too many count as a secret. */
function candidates(names: readonly string[]): readonly (readonly string[])[] {
  if (!names.some((name) => /[*?[]/.test(name))) return [names];
  let paths: string[][] = [[]];
  for (const [level, name] of names.entries()) {
    // What a bare "*" stands for is secret by where it lies, not by a name that it may happen to hold.
    const known = level < names.length - 1 ? FOLDERS : /^[*.?]+$/.test(name) ? PLACED : FILES;
    const some = /[*?[]/.test(name) ? [name, ...known.filter((each) => fits(name, each))] : [name];
    paths = paths.flatMap((path) => some.map((each) => [...path, each]));
    if (paths.length > MOST_CANDIDATES) return [["etc", "shadow"]];
  }
  return paths;
}

/** A pattern matches a name that begins with a dot only where it begins with one too. */
function fits(pattern: string, name: string): boolean {
  return (!name.startsWith(".") || pattern.startsWith(".")) && globMatches(pattern.replace(/\\(.)/g, "$1"), name);
}
