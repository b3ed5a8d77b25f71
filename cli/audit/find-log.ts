import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { type LogSource, openLogFile, rpcLogSource } from "../../lib/audit-verify/log-source.ts";
import { fault } from "../../lib/fault/fault.ts";
import { formatVkeys, parseVkeys } from "../../lib/sign/vkeys.ts";
import type { CommandContext } from "../command-context.ts";
import { databaseFile } from "../database-file.ts";
import { UsageError } from "../errors/usage-error.ts";
import { dataDir, readProfile } from "../profile.ts";
import { openSession } from "../session.ts";
import type { TargetFlags } from "../target.ts";

/** What the command line said about the log. */
export interface LogFlags extends TargetFlags {
  /** Policy's database file. */
  db?: string;
  /** Policy's PostgreSQL database, whose URL is in the environment. */
  databaseUrl?: true;
  /** The verifier key: its text, or a file that holds it, or several, one a line. */
  key?: string;
  /** Ask the service even where the file is at hand. */
  remote?: true;
}

/** A log to verify, and the key to verify it with. */
export interface FoundLog {
  source: LogSource;
  key: string;
  /** Where both are from, for people. */
  from: string;
  close(): void | Promise<void>;
}

/**
 * The log to verify: the database that was named, else the one of this machine's control plane, else what a
 * service returns. Throws a UsageError where there is none, or no key for it.
 */
export async function findLog(flags: LogFlags, context: CommandContext): Promise<FoundLog> {
  if (flags.databaseUrl) return logDatabase(flags, context);
  const path = flags.db ?? (flags.remote ? undefined : await localLog(flags, context));
  return path === undefined ? remoteLog(flags, context) : logFile(path, flags.key);
}

/** The verifier keys that a flag names, one a line: the text itself, or the content of a file. */
export async function readKey(named: string): Promise<string> {
  const keys = parseVkeys(existsSync(named) ? await readFile(named, "utf8") : named);
  if (keys) return formatVkeys(keys);
  throw new UsageError(`--key: ${named} is neither a verifier key nor a file that holds one`);
}

/** The file of the verifier key of a control plane on one machine, by its data folder. */
export function keyPathIn(dataFolder: string): string {
  return join(dataFolder, "policy", "checkpoint.vkey");
}

/** The file of the verifier key of a log's database: in policy's folder where policy shares it, else beside it. */
function keyPathOf(database: string): string {
  const folder = dirname(database);
  return existsSync(keyPathIn(folder)) ? keyPathIn(folder) : join(folder, "checkpoint.vkey");
}

async function localLog(flags: LogFlags, { env }: CommandContext): Promise<string | undefined> {
  // An address on the command line means the log at that address.
  if (flags.registry || flags.policy || env.REEVE_REGISTRY_URL || env.REEVE_POLICY_URL) return undefined;
  const stateDir = (await readProfile(dataDir(env)))?.stateDir || dataDir(env);
  const path = databaseFile(stateDir);
  return existsSync(path) ? path : undefined;
}

async function logFile(path: string, key: string | undefined): Promise<FoundLog> {
  if (!existsSync(path)) throw new UsageError(`there is no file ${path}`);
  const beside = keyPathOf(path);
  if (key === undefined && !existsSync(beside)) {
    throw new UsageError(`the verifier key of ${path} is not beside it`, ["name it with --key"]);
  }
  const verifierKey = await readKey(key ?? beside);
  const source = openLog(path);
  return { source, key: verifierKey, from: `${path}, key ${key ?? beside}`, close: () => source.close() };
}

function openLog(path: string): ReturnType<typeof openLogFile> {
  try {
    return openLogFile(path);
  } catch (cause: unknown) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw fault(
      ErrorReason.TAMPERED,
      { what: path },
      { message: `${path} cannot be read as policy's database: ${why}`, cause },
    );
  }
}

const URL_VARIABLE = "REEVE_POLICY_DATABASE_URL";

async function logDatabase({ db, key }: LogFlags, { env }: CommandContext): Promise<FoundLog> {
  const url = env[URL_VARIABLE] ?? "";
  if (db !== undefined) throw new UsageError("--db and --database-url are two logs: name one of them");
  if (url === "") throw new UsageError(`--database-url reads the URL from ${URL_VARIABLE}, which is not set`);
  if (key === undefined) {
    throw new UsageError("--database-url needs --key: a key from the database itself would prove nothing", [
      "checkpoint.vkey lies in the state folder of each policy replica",
    ]);
  }
  const verifierKey = await readKey(key);
  const { openLogDatabase } = await import("../../lib/audit-verify/log-database.ts");
  const { source, label, close } = await openLogDatabase(url).catch((cause: unknown) => {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new UsageError(`${URL_VARIABLE}: ${why}`, [], { cause });
  });
  return { source, key: verifierKey, from: `${label}, key ${key}`, close };
}

async function remoteLog(flags: LogFlags, context: CommandContext): Promise<FoundLog> {
  const session = await openSession(context, flags);
  try {
    const verifierKey =
      flags.key === undefined ? (await session.audit.getCheckpoint({})).verifierKey : await readKey(flags.key);
    const from =
      flags.key === undefined ? "the service, key as the service returns it: pin it with --key" : "the service";
    return { source: rpcLogSource(session.audit), key: verifierKey, from, close: () => session.close() };
  } catch (error: unknown) {
    session.close();
    throw error;
  }
}
