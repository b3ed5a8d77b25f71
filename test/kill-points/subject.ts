import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { type RegistryClient, registryClient } from "../../client/registry.ts";
import { Role } from "../../gen/ts/reeve/options/v1/access_pb.ts";
import { createTokenFile } from "../../lib/auth/token-file.ts";
import { createServiceTransport, type ServiceTransport } from "../../lib/rpc-client/transport.ts";
import { nodeEnv } from "../../testkit/node-env.ts";
import { AND, passedFile, targetFile } from "./kill-at.ts";

const SERVER = join(import.meta.dirname, "server.ts");
const PRELOAD = join(import.meta.dirname, "preload.ts");

/** A control plane in a process of its own that is killed at a point of its choosing, and started again. */
export interface Subject {
  registry: RegistryClient;
  /** The file that calls append to. */
  marks: string;
  /** The folder of its databases. */
  dataDir: string;
  /** Counts points from now on, and kills the process at the one of that name. Default: at none. */
  killAt(point?: string): Promise<void>;
  /** Resolves with whether the process died, within some milliseconds. */
  died(withinMs: number): Promise<boolean>;
  /** Stops counting. Resolves with the points that were passed, by their first names. */
  passed(): Promise<string[]>;
  start(): Promise<void>;
  /** Ends it as an operator would. */
  stop(): Promise<void>;
}

/** Starts one in an empty folder. */
export async function startSubject(folder: string, databaseUrl?: string): Promise<Subject> {
  const points = join(folder, "points");
  const dataDir = join(folder, "data");
  for (const path of [points, dataDir, join(folder, "work")]) await mkdir(path, { mode: 0o700 });
  const issued = createTokenFile(join(dataDir, "tokens.json")).issueToken({ name: "owner", roles: [Role.OPERATOR] });
  let child: ChildProcess | undefined;
  let transport: ServiceTransport | undefined;
  let registry: RegistryClient | undefined;

  const isGone = () => child === undefined || child.exitCode !== null || child.signalCode !== null;
  const stop = async (): Promise<void> => {
    transport?.close();
    if (child === undefined || isGone()) return;
    child.kill("SIGTERM");
    await once(child, "exit");
  };
  const start = async (): Promise<void> => {
    await stop();
    // Of a kill that came while the next one was being asked for.
    await rm(targetFile(points), { force: true });
    const args = ["--import", PRELOAD, SERVER, folder, ...(databaseUrl === undefined ? [] : [databaseUrl])];
    child = spawn(process.execPath, args, {
      env: { ...nodeEnv(), HOME: folder, REEVE_KILL_POINTS: points },
      stdio: ["ignore", "pipe", "inherit"],
    });
    transport = createServiceTransport({ baseUrl: await firstLine(child), token: issued.token });
    registry = registryClient(transport);
  };

  await start();
  return {
    get registry() {
      if (registry === undefined) throw new Error("it has not started");
      return registry;
    },
    marks: join(folder, "work", "marks"),
    dataDir,
    async killAt(point = "") {
      await writeFile(passedFile(points), "");
      // Renamed, so that it is never seen half written.
      await writeFile(`${targetFile(points)}.new`, point);
      await rename(`${targetFile(points)}.new`, targetFile(points));
    },
    async died(withinMs) {
      const deadline = performance.now() + withinMs;
      while (!isGone() && performance.now() < deadline) await sleep(5);
      return isGone();
    },
    async passed() {
      await rm(targetFile(points), { force: true });
      const lines = (await readFile(passedFile(points), "utf8")).trim().split("\n");
      return lines.flatMap((line) => line.split(AND)[0] ?? []);
    },
    start,
    stop,
  };
}

async function firstLine(child: ChildProcess): Promise<string> {
  if (child.stdout === null) throw new Error("the child has no standard output");
  for await (const line of createInterface(child.stdout)) return line;
  throw new Error("the server did not start");
}
