import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CLI, type CliResult, runReeve, shellOf } from "../../testkit/cli.ts";
import { type ControlPlane, startControlPlane } from "../../testkit/control-plane.ts";
import { nodeEnv } from "../../testkit/node-env.ts";

/** `reeve serve device` in a process of its own. */
export interface AgentProcess {
  readonly pid: number;
  /** Everything it has written to standard error. */
  text(): string;
  /** Resolves when the text was printed. Rejects when the process ends before. */
  shown(text: string | RegExp): Promise<string>;
  /** Resolves with its exit code. */
  ended: Promise<number | null>;
  /** Makes it stand still, as a machine that swaps or sleeps would, and go on. */
  pause(): void;
  resume(): void;
  stop(): Promise<void>;
}

/** Starts the agent of a machine with that home folder. With a token it joins first: the token is typed in. */
export function startAgent(
  home: string,
  words: readonly string[] = [],
  { env = {}, token }: { env?: Record<string, string>; token?: string } = {},
): AgentProcess {
  // The program of the process is bash until the machine has joined, and the agent from then on.
  const run = [`'${process.execPath}' '${CLI}'`, words.map((word) => `'${word}'`).join(" ")] as const;
  const script = token === undefined ? "" : `${run[0]} device join ${run[1]} && `;
  const child = spawn("bash", ["-c", `${script}exec ${run[0]} serve device`], {
    env: { ...nodeEnv(), HOME: home, ...env },
    stdio: ["pipe", "ignore", "pipe"],
  });
  child.stdin.on("error", () => undefined); // it may have ended
  child.stdin.end(token === undefined ? "" : `${token}\n`);
  let text = "";
  const ended = once(child, "exit").then(([code]) => code as number | null);
  child.stderr?.on("data", (chunk: Buffer) => {
    text += chunk.toString();
  });
  return {
    pid: child.pid ?? 0,
    text: () => text,
    ended,
    async shown(wanted) {
      for (;;) {
        const found = typeof wanted === "string" ? text.includes(wanted) && wanted : wanted.exec(text)?.[0];
        if (found) return found;
        const ends = ended.then((code) => Promise.reject(new Error(`the agent ended with ${code}:\n${text}`)));
        await Promise.race([once(child.stderr ?? child, "data"), ends]);
      }
    },
    pause: () => void child.kill("SIGSTOP"),
    resume: () => void child.kill("SIGCONT"),
    async stop() {
      child.kill("SIGTERM");
      await ended;
    },
  };
}

/** A machine with a control plane: registry and policy with certificates of `reeve service-ca`, and an operator's shell. */
export interface ControlPlaneMachine extends Pick<ControlPlane, "policyDatabase"> {
  /** Where the authority's files are. */
  home: string;
  /** Runs `reeve` as the operator. */
  reeve(...words: string[]): Promise<CliResult>;
  close(): Promise<void>;
}

/** Sets a control plane up from nothing, with certificates as the page on enrollment says. */
export async function startControlPlaneMachine(env: Record<string, string> = {}): Promise<ControlPlaneMachine> {
  const home = realpathSync(mkdtempSync(join(tmpdir(), "reeve-plane-")));
  const ca = join(home, "ca");
  const certs = async (...words: string[]) => {
    const { code, stderr } = await runReeve(["service-ca", ...words], { HOME: home });
    if (code !== 0) throw new Error(stderr);
  };
  await certs("init", "--out", ca);
  const caFile = join(ca, "ca.crt");
  const issue = async (service: string) => {
    const out = join(home, service);
    await certs("issue", "--ca", ca, "--service", service, "--ip", "127.0.0.1", "--out", out);
    return { certFile: join(out, "tls.crt"), keyFile: join(out, "tls.key"), caFile: join(out, "ca.crt") };
  };
  const certificate = readFileSync(caFile, "utf8");
  const plane = await startControlPlane({ authority: { certificate, issue }, devices: {}, registryEnv: env });
  const shell = { ...shellOf(plane, plane.tokens.operator, home), REEVE_CA_FILE: caFile };
  return {
    home,
    policyDatabase: plane.policyDatabase,
    reeve: (...words) => runReeve(words, shell),
    async close() {
      await plane.close();
      rmSync(home, { recursive: true, force: true });
    },
  };
}
