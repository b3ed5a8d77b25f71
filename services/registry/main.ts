import { createTokenFile } from "../../lib/auth/token-file.ts";
import { tokenStatuses } from "../../lib/auth/token-status.ts";
import { readConfig } from "../../lib/config/config.ts";
import { loadSealingKey } from "../../lib/identity/seal.ts";
import { sealerWith } from "../../lib/identity/sealer.ts";
import type { TlsSource } from "../../lib/identity/tls-source.ts";
import { untilRenewed } from "../../lib/link/until-renewed.ts";
import type { ExpectedServer } from "../../lib/rpc-client/tls.ts";
import { createServiceTransport, LINK_PINGS_MS, type ServiceTransport } from "../../lib/rpc-client/transport.ts";
import { protectedResource } from "../../lib/run/oidc-keys.ts";
import { type RunningService, runService } from "../../lib/run/run-service.ts";
import { approvalPage, registryEnvironment } from "./config.ts";
import { parseDevices, parseUrls } from "./dial-settings.ts";
import { deviceOver, policyOver } from "./dialers.ts";
import { createRegistry } from "./service.ts";

/** Runs the registry in a process of its own, as the environment says. */
export function runRegistry(env: Record<string, string | undefined>): Promise<RunningService> {
  const config = readConfig(registryEnvironment, env);
  const devices = parseDevices(config.devices, env);
  const resource = protectedResource(config);
  return runService({
    ...config,
    name: "registry",
    // The other replicas; policy calls no service.
    acceptServices: ["registry"],
    create: async ({ logger, bus, tls, trustDomain, metrics }) => {
      const sealingKey = config.sealingKeyFile === undefined ? undefined : await loadSealingKey(config.sealingKeyFile);
      const transportTo = transportsWith(config.serviceToken, tls);
      const toPolicy = (url: string) => transportTo(url, { kind: "service", name: "policy", trustDomain });
      const [policyUrl, ...otherPolicies] = parseUrls("REEVE_POLICY_URL", config.policyUrl);
      return createRegistry({
        config: {
          stateDir: config.stateDir,
          leaseMs: config.replicaLease,
          ...(config.advertiseUrl === undefined ? {} : { advertiseUrl: config.advertiseUrl }),
          callRetentionMs: config.callRetention,
          quotas: {
            calls: config.agentCalls,
            fanOutCalls: config.agentFanOutCalls,
            queuedCalls: config.agentQueuedCalls,
            queuedBytes: config.agentQueuedBytes,
          },
          ...(config.databaseUrl === undefined ? {} : { databaseUrl: config.databaseUrl }),
          toolsAllowed: config.toolsAllowed.split(",").filter((name) => name !== ""),
          ...approvalPage(config.approvalUrl),
          ...(resource === undefined ? {} : { protectedResource: resource }),
          ...(config.localDevice === undefined ? {} : { localDevice: config.localDevice }),
          ...(config.defaultDevice === undefined ? {} : { defaultDevice: config.defaultDevice }),
        },
        policy: untilRenewed(policyOver(toPolicy(policyUrl), ...otherPolicies.map(toPolicy)), tls),
        devices: new Map(
          [...devices].map(([name, url]) => {
            const transport = transportTo(url, { kind: "device", trustDomain });
            return [name, untilRenewed(deviceOver(transport, { pings: transport.pings }), tls)];
          }),
        ),
        tokenStatuses: tokenStatuses(createTokenFile(config.tokensFile)),
        bus,
        peerTransport: (url) => transportTo(url, { kind: "service", name: "registry", trustDomain }),
        ...(sealingKey === undefined ? {} : { sealer: sealerWith(sealingKey) }),
        enrollment: { ...config, tls, trustDomain },
        metrics: metrics.registry,
        logger,
      });
    },
  });
}

/** Connections as this registry: with its certificate to an https address, with the token to any other. */
function transportsWith(token: string | undefined, tls: TlsSource | undefined) {
  return (baseUrl: string, serverName: ExpectedServer): ServiceTransport => {
    const isSecure = tls !== undefined && baseUrl.startsWith("https:");
    return createServiceTransport({
      baseUrl,
      ...(isSecure ? { tls, serverName } : token !== undefined && { token }),
      protocol: "grpc",
      pingIntervalMs: serverName.kind === "device" ? LINK_PINGS_MS : 1000,
      pingTimeoutMs: 1000,
      // It may be another replica's.
      connectTimeoutMs: 2000,
    });
  };
}
