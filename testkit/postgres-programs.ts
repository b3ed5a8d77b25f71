import { execFileSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";

/** Where PostgreSQL's programs are, and how to run them. */
export interface PostgresPrograms {
  /** Has initdb and postgres in it. */
  folder: string;
  /** Whom to run them as; undefined for ourselves. PostgreSQL refuses to run as root. */
  user: { uid: number; gid: number } | undefined;
  /** What to put before a command so that it ends when this process is killed. Empty where there is no such thing. */
  endsWithParent: readonly string[];
}

// Debian keeps several versions beside each other, outside of any PATH.
const DEBIAN_FOLDER = "/usr/lib/postgresql";

/** The newest PostgreSQL of this machine; undefined where there is none. */
export function findPostgres(): PostgresPrograms | undefined {
  const onPath = (process.env.PATH ?? "").split(delimiter);
  const folder = [...debianFolders(), ...onPath].find((path) => existsSync(join(path, "initdb")));
  if (folder === undefined) return undefined;
  const user = process.getuid?.() === 0 ? ordinaryUser() : undefined;
  return { folder, user, endsWithParent: endsWithParent(user) };
}

/**
 * Installs Debian's package, without the server that it would start by itself. Test files run at the same time: the
 * first one installs, the others wait for its lock and find the programs.
 */
export function installPostgres(): PostgresPrograms {
  const script = join(import.meta.dirname, "..", ".ci", "install-postgres");
  const missing = `these tests need PostgreSQL 13 or later; on Debian: sudo ${script}`;
  if (process.getuid?.() !== 0) throw new Error(missing);
  try {
    execFileSync("flock", [join(tmpdir(), "reeve-install-postgres.lock"), script], { stdio: "pipe" });
  } catch (cause: unknown) {
    throw new Error(missing, { cause });
  }
  const programs = findPostgres();
  if (programs === undefined) throw new Error(missing);
  return programs;
}

function debianFolders(): string[] {
  if (!existsSync(DEBIAN_FOLDER)) return [];
  const versions = readdirSync(DEBIAN_FOLDER).sort((a, b) => Number(b) - Number(a));
  return versions.map((version) => join(DEBIAN_FOLDER, version, "bin"));
}

function ordinaryUser(): { uid: number; gid: number } {
  const name = ["postgres", "nobody"].find((candidate) => idOf("-u", candidate) !== undefined);
  const [uid, gid] = name === undefined ? [] : [idOf("-u", name), idOf("-g", name)];
  if (uid === undefined || gid === undefined)
    throw new Error("there is no user postgres or nobody to run PostgreSQL as");
  return { uid, gid };
}

function idOf(flag: "-u" | "-g", name: string): number | undefined {
  try {
    return Number(execFileSync("id", [flag, name], { stdio: ["ignore", "pipe", "ignore"] }).toString());
  } catch {
    return undefined;
  }
}

/** Linux sends the signal even where this process had no time to clean up. */
function endsWithParent(user: { uid: number; gid: number } | undefined): string[] {
  const setpriv = ["/usr/bin/setpriv", "/bin/setpriv"].find((path) => existsSync(path));
  if (setpriv === undefined) return [];
  const asUser = user ? ["--reuid", String(user.uid), "--regid", String(user.gid), "--clear-groups"] : [];
  return [setpriv, "--pdeathsig", "QUIT", ...asUser, "--"];
}
