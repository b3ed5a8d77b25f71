import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { constants, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { createInterface } from "node:readline";
import { isAccessible } from "../lib/files/is-accessible.ts";

/** A real nats-server with JetStream on, on a port of the loopback interface. */
export interface NatsServer {
  url: string;
  port: number;
  /** Kills it as a crash would (SIGKILL); resolves when it is gone. What it stored stays. */
  kill(): Promise<void>;
  /** Starts it again, on the same port and with what it has stored; kills it first when it runs. */
  restart(): Promise<void>;
  /** Stops it and deletes what it has stored. */
  close(): Promise<void>;
}

/** What can be chosen. */
export interface NatsServerOptions {
  /** More arguments, such as ["--user", "u", "--pass", "p"]. */
  args?: readonly string[];
}

const HOST = "127.0.0.1";

// Debian puts servers where a user's PATH does not look.
const MORE_FOLDERS = ["/usr/sbin", "/usr/local/bin"];

/**
 * Starts a server that keeps its files in a new temporary folder. Where there is no nats-server, Debian's package is
 * installed when the tests run as root; else this throws and says how to install one.
 */
export async function startNatsServer({ args = [] }: NatsServerOptions = {}): Promise<NatsServer> {
  const program = findServer() ?? installServer();
  const folder = mkdtempSync(join(tmpdir(), "reeve-nats-"));
  const start = (port: number) => launch(program, ["-a", HOST, "-p", String(port), "-js", "-sd", folder, ...args]);
  let running = await start(-1);
  const { port } = running;
  return {
    url: `nats://${HOST}:${port}`,
    port,
    kill: () => end(running.child, "SIGKILL"),
    async restart() {
      await end(running.child, "SIGKILL");
      running = await start(port);
    },
    async close() {
      await end(running.child, "SIGTERM");
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function findServer(): string | undefined {
  const folders = [...(process.env.PATH ?? "").split(delimiter), ...MORE_FOLDERS];
  return folders.map((folder) => join(folder, "nats-server")).find((path) => isAccessible(path, constants.X_OK));
}

function installServer(): string {
  const install = "apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq nats-server";
  const missing = `these tests need nats-server 2.9 or later on the PATH; on Debian: sudo sh -c '${install}'`;
  if (process.getuid?.() !== 0) throw new Error(missing);
  try {
    // Test files run at the same time: the first one installs, the others wait for its lock and find the program.
    const script = `command -v nats-server || (${install})`;
    execFileSync("flock", [join(tmpdir(), "reeve-install-nats-server.lock"), "sh", "-c", script], { stdio: "pipe" });
  } catch (cause: unknown) {
    throw new Error(missing, { cause });
  }
  const program = findServer();
  if (program === undefined) throw new Error(missing);
  return program;
}

interface Running {
  child: ChildProcess;
  port: number;
}

/** Resolves when the server says that it is ready; the port is in its log. */
async function launch(program: string, args: readonly string[]): Promise<Running> {
  const child = spawn(program, args, { stdio: ["ignore", "ignore", "pipe"] });
  const endWithTests = () => child.kill("SIGKILL");
  process.once("exit", endWithTests);
  child.once("exit", () => process.off("exit", endWithTests));
  const failed = once(child, "error").then(([error]) => Promise.reject(error));
  return { child, port: await Promise.race([readPort(child), failed]) };
}

async function readPort(child: ChildProcess): Promise<number> {
  if (!child.stderr) throw new Error("the server's log is not piped");
  const log: string[] = [];
  const lines = createInterface({ input: child.stderr });
  return new Promise((resolve, reject) => {
    let port = 0;
    lines.on("line", (line) => {
      log.push(line);
      port = Number(/Listening for client connections on [^ ]*:(\d+)$/.exec(line)?.[1] ?? port);
      if (line.endsWith("Server is ready")) resolve(port);
    });
    lines.on("close", () => reject(new Error(`nats-server did not start:\n${log.join("\n")}`)));
  });
}

async function end(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, "exit");
  child.kill(signal);
  await exited;
}
