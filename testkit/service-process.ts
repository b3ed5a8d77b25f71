import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { nodeEnv } from "./node-env.ts";

/** The command line's entry, run by this very Node. */
const CLI = join(import.meta.dirname, "..", "cli", "main.ts");

/** A service in a process of its own that can be killed and started again with the same state. */
export interface ServiceProcess {
  readonly name: string;
  readonly url: string;
  /** Everything it has logged, a line each. */
  readonly log: readonly string[];
  /** False once it has ended, for whatever reason. */
  readonly running: boolean;
  /** Kills it at once, as a crash would. Resolves when it is gone. */
  kill(): Promise<void>;
  /** Makes it stand still, as a machine that swaps or sleeps would, and go on. */
  pause(): void;
  resume(): void;
  /** Starts it again. Resolves when it listens. */
  start(): Promise<void>;
  /** Asks it to end and resolves when it has, killing it when it does not. */
  stop(): Promise<void>;
}

/** Starts `reeve serve <service>` with an environment of its own. Resolves when it has logged that it is ready. */
export async function startServiceProcess(
  service: string,
  port: number,
  env: Record<string, string>,
): Promise<ServiceProcess> {
  const log: string[] = [];
  let child: ChildProcess | undefined;

  const start = async (): Promise<void> => {
    const started = spawn(process.execPath, [CLI, "serve", service], {
      env: { ...nodeEnv(), HOME: process.env.HOME ?? "", ...env },
      stdio: ["ignore", "ignore", "pipe"],
    });
    child = started;
    const ready = Promise.withResolvers<void>();
    createInterface({ input: started.stderr }).on("line", (line) => {
      log.push(line);
      if (line.includes('"msg":"ready"')) ready.resolve();
    });
    started.once("exit", (code) =>
      ready.reject(new Error(`${service} ended with ${code}:\n${log.slice(-10).join("\n")}`)),
    );
    await ready.promise;
  };
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const gone = once(child, "exit");
    child.kill(signal);
    const timer = setTimeout(() => child?.kill("SIGKILL"), 15_000);
    await gone;
    clearTimeout(timer);
  };

  await start();
  return {
    name: service,
    url: `${env.REEVE_TLS_CERT_FILE === undefined ? "http" : "https"}://127.0.0.1:${port}`,
    log,
    get running() {
      return child?.exitCode === null && child.signalCode === null;
    },
    kill: () => end("SIGKILL"),
    pause: () => void child?.kill("SIGSTOP"),
    resume: () => void child?.kill("SIGCONT"),
    start,
    stop: () => end("SIGTERM"),
  };
}
