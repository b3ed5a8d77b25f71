import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CLI, type CliResult, runReeve } from "../../testkit/cli.ts";
import { freePorts } from "../../testkit/free-port.ts";
import { nodeEnv } from "../../testkit/node-env.ts";
import { type ServiceProcess, startServiceProcess } from "../../testkit/service-process.ts";

/** `reeve device-agent` in a process of its own. */
export interface AgentProcess {
  readonly pid: number;
  /** Everything it has written to standard error. */
  text(): string;
  /** Resolves when the text is there. Rejects when the process ends before. */
  shown(text: string | RegExp): Promise<string>;
  /** Resolves with its exit code. */
  ended: Promise<number | null>;
  /** Makes it stand still, as a machine that swaps or sleeps would, and go on. */
  pause(): void;
  resume(): void;
  stop(): Promise<void>;
}

/** Starts the agent of a machine with that home folder. With a token it joins: the token is typed in. */
export function startAgent(
  home: string,
  words: readonly string[] = [],
  { env = {}, token }: { env?: Record<string, string>; token?: string } = {},
): AgentProcess {
  const joining = token === undefined ? [] : ["--join", "-"];
  const child = spawn(process.execPath, [CLI, "device-agent", ...joining, ...words], {
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

/** A machine with a control plane: registry and policy with certificates of `reeve certs`, and an operator's shell. */
export interface ControlPlaneMachine {
  home: string;
  registry: ServiceProcess;
  policy: ServiceProcess;
  /** Runs `reeve` as the operator. */
  reeve(...words: string[]): Promise<CliResult>;
  close(): Promise<void>;
}

/** Sets a control plane up from nothing, as the page on enrollment says. */
export async function startControlPlane(env: Record<string, string> = {}): Promise<ControlPlaneMachine> {
  const home = realpathSync(mkdtempSync(join(tmpdir(), "reeve-plane-")));
  const certs = async (...words: string[]) => {
    const { code, stderr } = await runReeve(["certs", ...words], { HOME: home });
    if (code !== 0) throw new Error(stderr);
  };
  await certs("init", "--out", join(home, "ca"));
  for (const service of ["registry", "policy"]) {
    const out = join(home, service);
    await certs("issue", "--ca", join(home, "ca"), "--service", service, "--ip", "127.0.0.1", "--out", out);
  }
  const tokens = join(home, "tokens.json");
  const made = await runReeve(["tokens", "create", "--name", "ann", "--role", "operator", "--json"], {
    HOME: home,
    REEVE_TOKENS_FILE: tokens,
  });
  const { token } = JSON.parse(made.stdout) as { token: string };
  const [registryPort = 0, policyPort = 0] = await freePorts(2);
  const common = (service: string) => ({
    HOME: home,
    REEVE_TOKENS_FILE: tokens,
    REEVE_TLS_CERT_FILE: join(home, service, "tls.crt"),
    REEVE_TLS_KEY_FILE: join(home, service, "tls.key"),
    REEVE_TLS_CA_FILE: join(home, service, "ca.crt"),
  });
  const policy = await startServiceProcess("policy", policyPort, {
    ...common("policy"),
    REEVE_POLICY_PORT: String(policyPort),
    REEVE_POLICY_STATE_DIR: join(home, "policy"),
  });
  const registry = await startServiceProcess("registry", registryPort, {
    ...common("registry"),
    REEVE_REGISTRY_PORT: String(registryPort),
    REEVE_REGISTRY_STATE_DIR: join(home, "registry"),
    REEVE_POLICY_URL: policy.url,
    ...env,
  });
  const shell = {
    HOME: home,
    REEVE_REGISTRY_URL: registry.url,
    REEVE_POLICY_URL: policy.url,
    REEVE_TOKEN: token,
    REEVE_CA_FILE: join(home, "ca", "ca.crt"),
  };
  return {
    home,
    registry,
    policy,
    reeve: (...words) => runReeve(words, shell),
    async close() {
      await registry.stop();
      await policy.stop();
      rmSync(home, { recursive: true, force: true });
    },
  };
}
