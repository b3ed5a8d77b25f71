import { readConfig } from "../../lib/config/config.ts";
import { type RunningService, runService } from "../../lib/run/run-service.ts";
import { createServiceTransport } from "../../lib/serve/client.ts";
import { registryEnvironment } from "./config.ts";
import { parseDevices } from "./devices/device-list.ts";
import { deviceOver, policyOver } from "./openers.ts";
import { createRegistry } from "./service.ts";

/** Runs the registry in a process of its own, as the environment says. */
export function runRegistry(env: Record<string, string | undefined>): Promise<RunningService> {
  const config = readConfig(registryEnvironment, env);
  const transportTo = (baseUrl: string) =>
    createServiceTransport({
      baseUrl,
      token: config.serviceToken,
      protocol: "grpc",
      pingIntervalMs: 1000,
      pingTimeoutMs: 1000,
    });
  const devices = parseDevices(config.devices);
  return runService({
    ...config,
    name: "registry",
    create: ({ logger, bus }) =>
      createRegistry({
        config: {
          stateDir: config.stateDir,
          toolsAllowed: config.toolsAllowed.split(",").filter((name) => name !== ""),
          ...(config.localDevice === undefined ? {} : { localDevice: config.localDevice }),
        },
        policy: policyOver(transportTo(config.policyUrl.href.replace(/\/$/, ""))),
        devices: new Map([...devices].map(([name, url]) => [name, deviceOver(transportTo(url))])),
        bus,
        logger,
      }),
  });
}
