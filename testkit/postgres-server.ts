import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import {
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { Client } from "pg";
import { freePorts } from "./free-port.ts";
import { findPostgres, installPostgres, type PostgresPrograms } from "./postgres-programs.ts";

/** A real PostgreSQL server on a port of the loopback interface. Starting one takes seconds: one for a test file. */
export interface PostgresServer {
  /** The URL of a database that stays empty; its user may do everything. */
  url: string;
  port: number;
  /** Kills the server and all its processes as a power cut would (SIGKILL); resolves when they are gone. */
  kill(): Promise<void>;
  /** Starts it again, on the same port and with what it has stored; kills it first when it runs. */
  restart(): Promise<void>;
  /** Makes an empty database and resolves with its URL. */
  newDatabase(): Promise<string>;
  /** Stops it and deletes what it has stored. */
  close(): Promise<void>;
}

const CACHE = join(import.meta.dirname, "..", "node_modules", ".cache");
const HOST = "127.0.0.1";
const USER = "reeve";

/**
 * Starts a server that keeps its files in a new temporary folder. With REEVE_TEST_POSTGRES_URL it uses
 * that server instead, which cannot be killed; its user must be allowed to make databases. Where there is no PostgreSQL,
 * Debian's package is installed when the tests run as root; else this throws and says how to install one.
 *
 * @param options.fsync whether it waits for the disk, which only a loss of the machine's power needs: what a killed server
 *   has written is not lost. Default false.
 */
export async function startPostgresServer(options: { fsync?: boolean } = {}): Promise<PostgresServer> {
  const given = process.env.REEVE_TEST_POSTGRES_URL;
  if (given) return useGivenServer(given);
  const programs = findPostgres() ?? installPostgres();
  const { folder, password } = makeCluster(programs);
  const [port = 0] = await freePorts(1);
  let postmaster = await launch(programs, folder, port, options.fsync === true);
  const url = `postgres://${USER}:${password}@${HOST}:${port}/postgres`;
  const kill = () => killAll(postmaster);
  return {
    url,
    port,
    kill,
    async restart() {
      await kill();
      postmaster = await launch(programs, folder, port, options.fsync === true);
    },
    newDatabase: async () => (await createDatabase(url)).url,
    async close() {
      await end(postmaster, "SIGQUIT");
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function useGivenServer(url: string): PostgresServer {
  const made: string[] = [];
  const refuse = async () => {
    throw new Error("the server of REEVE_TEST_POSTGRES_URL cannot be killed by a test; unset it to run this one");
  };
  return {
    url,
    port: Number(new URL(url).port || 5432),
    kill: refuse,
    restart: refuse,
    async newDatabase() {
      const { name, url: newUrl } = await createDatabase(url);
      made.push(name);
      return newUrl;
    },
    async close() {
      for (const name of made) await runSql(url, `drop database if exists ${name} with (force)`);
    },
  };
}

async function createDatabase(url: string): Promise<{ name: string; url: string }> {
  const name = `reeve_test_${randomBytes(6).toString("hex")}`;
  await runSql(url, `create database ${name} template template0`);
  const made = new URL(url);
  made.pathname = `/${name}`;
  return { name, url: made.href };
}

async function runSql(url: string, statement: string): Promise<void> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}

/** Makes the files of a server in a new folder that belongs to whom the server runs as. */
function makeCluster(programs: PostgresPrograms): { folder: string; password: string } {
  const template = templateFor(programs);
  const folder = newFolder(programs);
  execFileSync("cp", ["-a", join(template, "data"), folder]);
  return { folder, password: readFileSync(join(template, "password"), "utf8") };
}

/** The files of a new server, made once for each version: initdb takes ten times as long as a copy. */
function templateFor(programs: PostgresPrograms): string {
  const version = execFileSync(join(programs.folder, "initdb"), ["--version"], { encoding: "utf8" });
  const template = join(CACHE, `${version.trim().replaceAll(/\W+/g, "-")}-${programs.user?.uid ?? process.getuid?.()}`);
  if (existsSync(template)) return template;
  const made = initialized(programs);
  const copy = `${template}-${process.pid}`;
  mkdirSync(CACHE, { recursive: true });
  execFileSync("cp", ["-a", made, copy]);
  rmSync(made, { recursive: true });
  try {
    renameSync(copy, template);
  } catch {
    // Another test file was first.
    rmSync(copy, { recursive: true });
  }
  return template;
}

function newFolder({ user }: PostgresPrograms): string {
  const folder = mkdtempSync(join(tmpdir(), "reeve-postgres-"));
  if (user) chownSync(folder, user.uid, user.gid);
  return folder;
}

function initialized(all: PostgresPrograms): string {
  const { folder: programs, user } = all;
  const folder = newFolder(all);
  const passwordFile = join(folder, "password");
  writeFileSync(passwordFile, randomBytes(12).toString("hex"), { mode: 0o600 });
  if (user) chownSync(passwordFile, user.uid, user.gid);
  const args = ["-D", join(folder, "data"), "-U", USER, "-A", "scram-sha-256", "--pwfile", passwordFile];
  // Nothing to lose yet: --no-sync is for initdb alone.
  const more = ["--no-sync", "-E", "UTF8", "--locale", "C"];
  execFileSync(join(programs, "initdb"), [...args, ...more], { ...user, cwd: folder, stdio: "pipe" });
  return folder;
}

/** Resolves when the server says that it is ready. */
async function launch(programs: PostgresPrograms, folder: string, port: number, fsync: boolean): Promise<ChildProcess> {
  const { user, endsWithParent } = programs;
  const data = [
    "-D",
    join(folder, "data"),
    "-k",
    folder,
    "-h",
    HOST,
    "-p",
    String(port),
    "-c",
    "max_connections=200",
    "-c",
    `fsync=${fsync ? "on" : "off"}`,
  ];
  const command = [...endsWithParent, join(programs.folder, "postgres"), ...data];
  const child = spawn(command[0] ?? "", command.slice(1), {
    // setpriv changes the user itself, and could not any more once it is no longer root.
    ...(endsWithParent.length === 0 && user),
    cwd: folder,
    env: { ...process.env, LC_ALL: "C" },
    stdio: ["ignore", "ignore", "pipe"],
  });
  // On SIGQUIT it ends its own processes too.
  const endWithTests = () => child.kill("SIGQUIT");
  process.once("exit", endWithTests);
  child.once("exit", () => process.off("exit", endWithTests));
  const failed = once(child, "error").then(([error]) => Promise.reject(error));
  await Promise.race([untilReady(child), failed]);
  return child;
}

async function untilReady(child: ChildProcess): Promise<void> {
  if (!child.stderr) throw new Error("the server's log is not piped");
  const log: string[] = [];
  const lines = createInterface({ input: child.stderr });
  return new Promise((resolve, reject) => {
    lines.on("line", (line) => {
      if (line.includes("database system is ready to accept connections")) resolve();
      // Only what explains a start that failed; the rest is read so that the pipe never fills.
      if (log.length < 50) log.push(line);
    });
    lines.on("close", () => reject(new Error(`PostgreSQL did not start:\n${log.join("\n")}`)));
  });
}

async function end(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, "exit");
  child.kill(signal);
  await exited;
}

/** Each of PostgreSQL's processes is in a group of its own. The first is stopped meanwhile, so that it starts no other. */
async function killAll(postmaster: ChildProcess): Promise<void> {
  if (postmaster.exitCode !== null || postmaster.signalCode !== null) return;
  postmaster.kill("SIGSTOP");
  const children = childrenOf(postmaster.pid ?? 0);
  for (const pid of children) process.kill(pid, "SIGKILL");
  await end(postmaster, "SIGKILL");
  // A new server refuses to start while one of them still has the old one's memory.
  while (children.some(isRunning)) await sleep(5);
}

/** Needs no `ps`, which a small container lacks, where there is /proc. */
function childrenOf(parent: number): number[] {
  const table = process.platform === "linux" ? procTable() : execFileSync("ps", ["-A", "-o", "pid=,ppid="]).toString();
  return table.split("\n").flatMap((line) => {
    const [pid = 0, ppid] = line.trim().split(/\s+/).map(Number);
    return ppid === parent ? [pid] : [];
  });
}

function procTable(): string {
  const pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  return pids.map((pid) => `${pid} ${statOf(Number(pid))?.parent ?? ""}`).join("\n");
}

/** Undefined where the process is gone. */
function statOf(pid: number): { state: string; parent: number } | undefined {
  try {
    // "pid (name) state parent …"; the name may hold anything.
    const [state = "", parent] = readFileSync(`/proc/${pid}/stat`, "utf8")
      .replace(/^.*\) /s, "")
      .split(" ");
    return { state, parent: Number(parent) };
  } catch {
    return undefined;
  }
}

/** A zombie has given its memory back. */
function isRunning(pid: number): boolean {
  if (process.platform === "linux") return (statOf(pid)?.state ?? "Z") !== "Z";
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

/** Runs one query, as a program beside the product would. */
export async function queryPostgres(url: string, text: string): Promise<Record<string, unknown>[]> {
  const client = new Client(url);
  await client.connect();
  try {
    return (await client.query<Record<string, unknown>>(text)).rows;
  } finally {
    await client.end();
  }
}
