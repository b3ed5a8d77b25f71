import { createSecretKey } from "node:crypto";
import { join } from "node:path";
import { startStack } from "../../cli/stack/stack.ts";
import { Mode } from "../../gen/ts/reeve/device/v1/device_pb.ts";
import { createTokenFile } from "../../lib/auth/token-file.ts";
import { createInProcessBus } from "../../lib/events/in-process-bus.ts";
import { sealerWith } from "../../lib/identity/sealer.ts";
import { createLogger } from "../../lib/log/log.ts";
import { createServer } from "../../lib/server/server.ts";
import { createDeviceAgent } from "../../services/device-agent/service.ts";
import { createPolicyService } from "../../services/policy/service.ts";
import { createRegistry } from "../../services/registry/service.ts";

// Policy, registry and device in one process, on the files in a folder or on PostgreSQL. Prints where the registry listens.
const [folder = "", databaseUrl] = process.argv.slice(2);
const dataDir = join(folder, "data");
const deviceName = "this";
const device = { mode: Mode.ALL, readRoots: [], writeRoots: [join(folder, "work")] };
const logger = createLogger({ service: "test", level: "error" });

const { url, close } = await (databaseUrl === undefined ? startOnFiles() : startOnPostgres(databaseUrl));
process.stdout.write(`${url}\n`);
process.once("SIGTERM", () => void close().then(() => process.exit(0)));

/** As `reeve up` does it. */
async function startOnFiles() {
  const ports = { registry: 0, policy: 0, device: 0 };
  const stack = await startStack({ dataDir, ports, deviceName, ...device, env: process.env, logger });
  return { url: stack.registryUrl, close: () => stack.close() };
}

async function startOnPostgres(database: string) {
  const bus = createInProcessBus();
  const policy = await createPolicyService({
    config: { stateDir: join(dataDir, "policy"), databaseUrl: `${database}?schema=policy` },
    logger,
    bus,
  });
  const agent = await createDeviceAgent({
    config: { stateDir: join(dataDir, "device"), name: deviceName, labels: {}, denied: [dataDir], ...device },
    grantKeys: policy.grantKeys,
    env: process.env,
    logger,
  });
  const registry = await createRegistry({
    config: {
      stateDir: join(dataDir, "registry"),
      databaseUrl: `${database}?schema=registry`,
      localDevice: deviceName,
      // What the killed process owned is claimed when its lease is over.
      leaseMs: 300,
    },
    policy: policy.link("registry"),
    devices: new Map([[deviceName, agent.link]]),
    bus,
    sealer: sealerWith(createSecretKey(Buffer.alloc(32, 7))),
    logger,
  });
  const { authenticate } = createTokenFile(join(dataDir, "tokens.json"));
  const { routes, services, ready } = registry;
  const server = await createServer({ routes, services, ready, authenticate, logger });
  return {
    url: server.url,
    async close() {
      await Promise.all([server.close(), agent.close(), registry.close()]);
      await policy.close();
    },
  };
}
