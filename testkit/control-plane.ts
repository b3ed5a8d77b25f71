import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Role } from "../gen/ts/reeve/options/v1/access_pb.ts";
import { createTokenFile } from "../lib/auth/token-file.ts";
import { freePorts } from "./free-port.ts";
import { type ServiceProcess, startServiceProcess } from "./service-process.ts";

/** Registry, policy and a device agent, each in a process of its own, talking Connect to each other. */
export interface ControlPlane {
  registry: ServiceProcess;
  policy: ServiceProcess;
  device: ServiceProcess;
  /** The devices besides "this", by name. */
  others: Readonly<Record<string, ServiceProcess>>;
  /** Bearer tokens, by what their holder may be. */
  tokens: { operator: string; agent: string; auditor: string; service: string };
  /** Where everything lives; `work` in it is the only root of every device to read and write in. */
  folder: string;
  work: string;
  policyDb: string;
  /** Ends everything and removes the folder. */
  close(): Promise<void>;
}

/** What can be chosen. */
export interface ControlPlaneOptions {
  policyFile?: string;
  mode?: "user" | "sudo" | "all";
  natsUrl?: string;
  env?: Record<string, string>;
  /** Devices besides "this": their labels, such as "role=web", by name. */
  others?: Record<string, string>;
}

/** Starts a control plane on free loopback ports with fresh state. */
export async function startControlPlane(options: ControlPlaneOptions = {}): Promise<ControlPlane> {
  const folder = await mkdtemp(join(tmpdir(), "reeve-test-"));
  const work = join(folder, "work");
  await mkdir(work);
  const names = Object.keys(options.others ?? {});
  const [registryPort = 0, policyPort = 0, devicePort = 0, ...otherPorts] = await freePorts(3 + names.length);
  const tokensFile = join(folder, "tokens.json");
  const issue = (role: Role, name: string) => createTokenFile(tokensFile).issueToken({ name, roles: [role] }).token;
  const tokens = {
    operator: issue(Role.OPERATOR, "owner"),
    agent: issue(Role.AGENT, "agent"),
    auditor: issue(Role.AUDITOR, "auditor"),
    service: issue(Role.SERVICE, "service"),
  };
  const shared = {
    REEVE_TOKENS_FILE: tokensFile,
    REEVE_LOG_LEVEL: "info",
    ...(options.natsUrl === undefined ? {} : { REEVE_NATS_URL: options.natsUrl }),
    ...options.env,
  };
  const started: ServiceProcess[] = [];
  const start = async (command: string, port: number, env: Record<string, string>) => {
    const one = await startServiceProcess(command, port, { ...shared, ...env });
    started.push(one);
    return one;
  };
  const close = async () => {
    for (const one of started.reverse()) await one.stop();
    await rm(folder, { recursive: true, force: true });
  };
  try {
    const policy = await start("policy", policyPort, {
      REEVE_POLICY_PORT: String(policyPort),
      REEVE_POLICY_STATE_DIR: join(folder, "policy"),
      ...(options.policyFile === undefined ? {} : { REEVE_POLICY_FILE: options.policyFile }),
    });
    const startDevice = (name: string, port: number, stateDir: string, labels: string) =>
      start("device-agent", port, {
        REEVE_DEVICE_PORT: String(port),
        REEVE_DEVICE_STATE_DIR: join(folder, stateDir),
        REEVE_DEVICE_NAME: name,
        REEVE_DEVICE_MODE: options.mode ?? "all",
        REEVE_DEVICE_WRITE_ROOTS: work,
        REEVE_GRANT_KEY_FILE: join(folder, "policy", "grant.pub"),
        ...(labels === "" ? {} : { REEVE_DEVICE_LABELS: labels }),
      });
    const device = await startDevice("this", devicePort, "device", "");
    const others = Object.fromEntries(
      await Promise.all(
        Object.entries(options.others ?? {}).map(async ([name, labels], at) => {
          return [name, await startDevice(name, otherPorts[at] ?? 0, `device-${name}`, labels)] as const;
        }),
      ),
    );
    const dialed = Object.entries({ this: device, ...others }).map(([name, { url }]) => `${name}=${url}`);
    const registry = await start("registry", registryPort, {
      REEVE_REGISTRY_PORT: String(registryPort),
      REEVE_REGISTRY_STATE_DIR: join(folder, "registry"),
      REEVE_POLICY_URL: policy.url,
      REEVE_DEVICES: dialed.join(","),
      REEVE_LOCAL_DEVICE: "this",
      REEVE_SERVICE_TOKEN: tokens.service,
    });
    return {
      registry,
      policy,
      device,
      others,
      tokens,
      folder,
      work,
      policyDb: join(folder, "policy", "policy.db"),
      close,
    };
  } catch (error: unknown) {
    await close();
    throw error;
  }
}
