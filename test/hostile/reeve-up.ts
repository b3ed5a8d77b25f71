import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { nodeEnv } from "../../testkit/node-env.ts";
import type { Target } from "./visit.ts";

const CLI = join(import.meta.dirname, "..", "..", "cli", "main.ts");

/** A `reeve up` with a home of its own, and every port that it has. */
export interface AttackedReeve {
  targets: readonly Target[];
  /** The registry's URL. */
  url: string;
  /** An agent's token. */
  token: string;
  /** How it has ended, where it has. */
  ended(): string | undefined;
  /** How many errors of connections reached the process's guard: each has an emitter that nothing listens to. */
  uncaught(): number;
  /** Resident memory, in megabytes. Undefined where the machine does not say. */
  rssMb(): Promise<number | undefined>;
  /** The last of what it wrote to standard error. */
  log(): string;
  /** Asks it to end, and removes its home. Resolves with its exit code. */
  stop(): Promise<number | null>;
}

const HEALTH = ["/grpc.health.v1.Health/Check", "/grpc.health.v1.Health/Watch", "/grpc.health.v1.Health/List"];
const COMMON = [
  ...HEALTH,
  "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
  "/healthz",
  "/metrics",
  "/nothing",
];

/** What is attacked on each port, by the name that `reeve up` prints. */
const PATHS: Readonly<Record<string, readonly string[]>> = {
  registry: [
    "/reeve.call.v1.CallService/CallTool",
    "/reeve.call.v1.CallService/CallTools",
    "/reeve.tool.v1.ToolService/ListTools",
    "/reeve.call.v1.CallService/WatchCall",
    "/reeve.enrollment.v1.EnrollmentService/Join",
    "/reeve.tools.v1.FileSystem/Read",
    "/invoke",
    "/tools",
    "/calls/x",
  ],
  policy: [
    "/reeve.approval.v1.ApprovalService/Approve",
    "/reeve.approval.v1.ApprovalService/WatchApprovals",
    "/reeve.policy.v1.PolicyService/Authorize",
    "/reeve.audit.v1.AuditService/ListRecords",
  ],
  "device agent": [
    "/reeve.device.v1.DeviceAgentService/Execute",
    "/reeve.device.v1.DeviceAgentService/GetManifest",
    "/reeve.device.v1.DeviceAgentService/Link",
  ],
  devices: [
    "/reeve.device.v1.AttachService/Attach",
    "/reeve.enrollment.v1.EnrollmentService/Join",
    "/reeve.enrollment.v1.EnrollmentService/RenewCertificate",
    "/reeve.call.v1.CallService/CallTool",
  ],
};

/** What the guard logs of an error that it lets the process go on after. */
const UNCAUGHT = /"total":(\d+),"msg":"connection failed with nothing waiting for it"/g;

/** Starts it. Rejects with what it wrote where it does not start. */
export async function startReeveUp(): Promise<AttackedReeve> {
  const home = await mkdtemp(join(tmpdir(), "reeve-hostile-"));
  const args = [CLI, "up", "--port", "0", "--device-address", "127.0.0.1:0", "--read", home];
  const child = spawn(process.execPath, args, { env: { ...nodeEnv(), HOME: home }, stdio: ["ignore", "pipe", "pipe"] });
  let log = "";
  let uncaught = 0;
  child.stderr.on("data", (chunk: Buffer) => {
    log = (log + chunk.toString()).slice(-20_000);
    uncaught = Math.max(uncaught, ...[...log.matchAll(UNCAUGHT)].map(([, total]) => Number(total)));
  });
  let ended: string | undefined;
  child.once("exit", (code, signal) => {
    ended = `exit code ${code}, signal ${signal}`;
  });
  const text = await printed(child, () => log);
  const targets = Object.entries(PATHS).map(([name, paths]): Target => {
    const [, scheme, host = "", port] = new RegExp(`^${name} +(https?)://([^:]+):(\\d+)$`, "m").exec(text) ?? [];
    if (port === undefined) throw new Error(`reeve up does not say where its port ${name} is:\n${text}`);
    return { name, host, port: Number(port), isSecure: scheme === "https", paths: [...paths, ...COMMON] };
  });
  const [, token = ""] = /agent +(rv_\S+)/.exec(text) ?? [];
  const [registry] = targets;
  return {
    targets,
    url: `http://${registry?.host}:${registry?.port}`,
    token,
    ended: () => ended,
    uncaught: () => uncaught,
    rssMb: () => rssOf(child.pid),
    log: () => log,
    async stop() {
      if (ended === undefined) {
        const exited = once(child, "exit");
        child.kill("SIGINT");
        await exited;
      }
      await rm(home, { recursive: true, force: true });
      return child.exitCode;
    },
  };
}

async function printed(child: ChildProcess, log: () => string): Promise<string> {
  let text = "";
  const ready = Promise.withResolvers<void>();
  child.stdout?.on("data", (chunk: Buffer) => {
    text += chunk;
    if (text.includes("Ctrl-C ends it.")) ready.resolve();
  });
  child.once("exit", () => ready.reject(new Error(`reeve up did not start:\n${text}${log()}`)));
  await ready.promise;
  return text;
}

async function rssOf(pid: number | undefined): Promise<number | undefined> {
  const status = await readFile(`/proc/${pid}/status`, "utf8").catch(() => "");
  const kilobytes = /^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1];
  return kilobytes === undefined ? undefined : Math.round(Number(kilobytes) / 1024);
}
