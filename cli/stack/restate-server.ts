import { type ChildProcess, spawn } from "node:child_process";
import { generateKeyPairSync } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "../../lib/log/log.ts";
import { identityKeyOf } from "../../services/agent/engine/restate/request-identity.ts";
import { type RestateAddress, restateRequest } from "../../services/agent/engine/restate/restate-http.ts";
import { UsageError } from "../errors/usage-error.ts";
import { serverConfig, serverSockets } from "./restate-config.ts";
import { endOrphan } from "./restate-orphan.ts";
import { restateProgram } from "./restate-program.ts";

/** A Restate server for the durable runs of this machine. */
export interface RestateServer {
  ingress: RestateAddress;
  admin: RestateAddress;
  /** The public half of the key that it signs its requests with. */
  identityKey: string;
  /** The server's process. */
  pid(): number | undefined;
  /** Ends the server, and resolves when it has ended. */
  close(): Promise<void>;
}

/** How to start it. */
export interface RestateServerOptions {
  /** A private folder for its data and its sockets. */
  folder: string;
  logger: Logger;
}

/** How long the server may take to be healthy, in milliseconds. */
const HEALTHY_MS = 60_000;

/** The longest path that a socket can have everywhere. */
const MAX_PATH_BYTES = 103;

/** How long it may take to end before it is killed, in milliseconds. */
const END_MS = 12_000;

/**
 * Starts a Restate server and waits until it is healthy. One that dies is started again, with pauses that grow to 10 seconds.
 * Throws where the program is not installed, and where the path of the folder is too long for sockets.
 */
export async function startRestateServer({ folder, logger }: RestateServerOptions): Promise<RestateServer> {
  const program = restateProgram();
  const sockets = serverSockets(folder);
  if (Buffer.byteLength(sockets.ingress) > MAX_PATH_BYTES) {
    const remedy = "set REEVE_DATA_DIR to a folder with a shorter path";
    throw new UsageError(`${folder} is too long a path for the sockets of a Restate server`, [remedy]);
  }
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const identityFile = join(folder, "identity.pem");
  const identityKey = identityKeyOf(await identityOf(identityFile));
  const config = join(folder, "restate.toml");
  await writeFile(config, serverConfig({ folder, identityFile }), { mode: 0o600 });
  const pidFile = join(folder, "restate.pid");
  await endOrphan(pidFile, config);
  const admin = { socketPath: sockets.admin };

  let closed = false;
  let child: ChildProcess | undefined;
  let ended: Promise<void> = Promise.resolve();
  const start = async (): Promise<void> => {
    for (const socket of Object.values(sockets)) await rm(socket, { force: true });
    const started = spawn(program, ["--config-file", config, "--no-logo"], {
      stdio: ["ignore", "ignore", "pipe"],
      env: { PATH: process.env.PATH ?? "", HOME: folder },
    });
    child = started;
    await writeFile(pidFile, String(started.pid ?? ""), { mode: 0o600 });
    ended = new Promise((resolve) => {
      started.once("exit", (code, signal) => {
        if (!closed) logger.warn({ code, signal }, "restate server ended");
        resolve();
      });
      started.once("error", (err) => {
        logger.error({ err }, "restate server not started");
        resolve();
      });
    });
    started.stderr?.on("data", (chunk: Buffer) => logger.debug({ text: chunk.toString().slice(0, 2000) }, "restate"));
  };
  const keep = async (): Promise<void> => {
    for (let failures = 0; ; failures++) {
      const began = performance.now();
      await ended;
      if (closed) return;
      if (performance.now() - began > 60_000) failures = 0;
      await sleep(Math.min(10_000, 250 * 2 ** failures), undefined, { ref: false });
      if (closed) return;
      await start();
    }
  };

  await start();
  const keeping = keep();
  const close = async (): Promise<void> => {
    closed = true;
    child?.kill("SIGTERM");
    const late = setTimeout(() => child?.kill("SIGKILL"), END_MS);
    await ended;
    clearTimeout(late);
    await keeping;
  };
  try {
    await untilHealthy(admin, () => child?.exitCode ?? undefined);
  } catch (error: unknown) {
    await close();
    throw error;
  }
  return {
    ingress: { socketPath: sockets.ingress },
    admin,
    identityKey,
    pid: () => child?.pid,
    close,
  };
}

async function untilHealthy(admin: { socketPath: string }, exitCode: () => number | undefined): Promise<void> {
  const until = performance.now() + HEALTHY_MS;
  while (performance.now() < until) {
    const code = exitCode();
    if (code !== undefined) throw new Error(`the restate server ended with code ${code}`);
    if (existsSync(admin.socketPath)) {
      const answer = await restateRequest(admin, { method: "GET", path: "/health" }).catch(() => undefined);
      if (answer?.status === 200) return;
    }
    await sleep(50);
  }
  throw new Error(`the restate server was not healthy within ${HEALTHY_MS / 1000} seconds`);
}

/** The key in the file, which is made where there is none. */
async function identityOf(file: string): Promise<string> {
  if (!existsSync(file)) {
    const { privateKey } = generateKeyPairSync("ed25519");
    const pem = privateKey.export({ type: "pkcs8", format: "pem" });
    await writeFile(file, pem, { mode: 0o600, flag: "wx" });
  }
  return readFile(file, "utf8");
}
