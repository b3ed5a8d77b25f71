import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { Mode } from "../../gen/ts/reeve/device/v1/device_pb.ts";
import { createTokenFile, type TokenFile } from "../../lib/auth/token-file.ts";
import type { Logger } from "../../lib/log/log.ts";
import { openBus, type Service } from "../../lib/run/run-service.ts";
import { createServer, type Server } from "../../lib/serve/server.ts";
import { loadCatalogue } from "../../lib/toolschema/catalogue-file.ts";
import { createDeviceAgent } from "../../services/device-agent/service.ts";
import { createPolicyService, type PolicyService } from "../../services/policy/service.ts";
import { createRegistry } from "../../services/registry/service.ts";

/** What a stack on one machine is told. */
export interface StackOptions {
  /** Where everything lives: tokens, keys, databases. Made when missing, mode 0700. */
  dataDir: string;
  /** Ports on loopback; 0 takes any. */
  ports: { registry: number; policy: number; device: number };
  /** The device's name. */
  deviceName: string;
  mode: Mode;
  readRoots: readonly string[];
  writeRoots: readonly string[];
  toolsAllowed?: readonly string[];
  policyFile?: string;
  natsUrl?: string;
  /** The environment that programs on the device get their few variables from. */
  env: Record<string, string | undefined>;
  logger: Logger;
}

/** All services in one process. */
export interface Stack {
  registryUrl: string;
  policyUrl: string;
  deviceUrl: string;
  tokens: TokenFile;
  /** The log's verifier key, in the form of C2SP signed notes. */
  checkpointKey: string;
  /** Stops what runs, waits at most 6 seconds for callers that are still there, and closes everything. Safe to repeat. */
  close(): Promise<void>;
}

/**
 * Starts policy, a device agent and the registry in this process, joined by the same messages that they
 * exchange over a network, and each listening on a loopback port of its own.
 */
export async function startStack(options: StackOptions): Promise<Stack> {
  const { dataDir, logger, ports } = options;
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  const tokens = createTokenFile(join(dataDir, "tokens.json"));
  const bus = await openBus(options.natsUrl, "reeve", logger);
  const servers: Server[] = [];
  let policy: PolicyService | undefined;
  const callers: Service[] = [];

  const serve = async (service: Service, port: number, name: string): Promise<Server> => {
    const server = await createServer({
      port,
      routes: service.routes,
      services: service.services,
      ready: service.ready,
      authenticate: tokens.authenticate,
      logger: logger.child({ part: name }),
      ...(service.fallback === undefined ? {} : { fallback: service.fallback }),
    });
    servers.push(server);
    return server;
  };

  const closeServices = async (): Promise<void> => {
    // The device ends its calls and tells the registry, which tells policy.
    await Promise.all(callers.map((service) => service.close()));
    await policy?.close();
  };
  const closeAll = async (): Promise<void> => {
    // Together: a server waits for streams that only its service ends.
    await Promise.all([...servers.map((server) => server.close()), closeServices()]);
    await bus.close();
  };
  let closing: Promise<void> | undefined;
  const close = () => (closing ??= closeAll());

  try {
    policy = await createPolicyService({
      config: {
        stateDir: join(dataDir, "policy"),
        ...(options.policyFile === undefined ? {} : { policyFile: options.policyFile }),
      },
      logger: logger.child({ part: "policy" }),
      bus,
    });
    const device = await createDeviceAgent({
      config: {
        stateDir: join(dataDir, "device"),
        name: options.deviceName,
        mode: options.mode,
        labels: {},
        readRoots: options.readRoots,
        writeRoots: options.writeRoots,
        // Tokens, keys and databases of every part: no tool reaches them, whatever the roots are.
        denied: [dataDir],
      },
      grantKeys: [policy.grantKey],
      schemaDigests: new Map(loadCatalogue().tools.map((tool) => [tool.name, tool.schemaDigest])),
      env: options.env,
      logger: logger.child({ part: "device-agent" }),
    });
    callers.push(device);
    const registry = await createRegistry({
      config: {
        stateDir: join(dataDir, "registry"),
        localDevice: options.deviceName,
        ...(options.toolsAllowed === undefined ? {} : { toolsAllowed: options.toolsAllowed }),
      },
      policy: policy.link("registry"),
      devices: new Map([[options.deviceName, device.link]]),
      bus,
      logger: logger.child({ part: "registry" }),
    });
    callers.push(registry);
    const policyServer = await serve(policy, ports.policy, "policy");
    const deviceServer = await serve(device, ports.device, "device-agent");
    const registryServer = await serve(registry, ports.registry, "registry");
    return {
      registryUrl: registryServer.url,
      policyUrl: policyServer.url,
      deviceUrl: deviceServer.url,
      tokens,
      checkpointKey: policy.checkpointKey,
      close,
    };
  } catch (error: unknown) {
    await close();
    throw error;
  }
}
