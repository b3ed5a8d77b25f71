import type { TlsSource } from "../../../lib/identity/tls-source.ts";
import type { Logger } from "../../../lib/log/log.ts";
import { createServiceTransport, LINK_PINGS_MS } from "../../../lib/rpc-client/transport.ts";
import { openAttachCount } from "../count-file.ts";
import type { DeviceAgent } from "../service.ts";
import { type AttachOptions, attachAgent } from "./attach.ts";

/** How an agent reaches the registry. */
export interface AttachSettings {
  /** https addresses of registries, at least one. */
  urls: readonly string[];
  /** The agent's own folder. */
  stateDir: string;
  heartbeatMs: number;
  /** The device's certificate, and whom it trusts. A renewed one is shown at once, on a new stream. */
  tls: TlsSource | undefined;
  trustDomain: string;
  logger: Logger;
}

/** The same agent, attached to the registry until it is closed. Rejects where it has no certificate to show. */
export async function attachedAgent(agent: DeviceAgent, settings: AttachSettings): Promise<DeviceAgent> {
  const { urls, stateDir, heartbeatMs, tls, trustDomain, logger } = settings;
  if (tls === undefined) {
    throw new Error("a device that dials the registry needs a certificate: enroll it with `reeve device join`");
  }
  const attachment = attachAgent({
    agent,
    count: await openAttachCount(stateDir),
    urls,
    transportTo: transportsToRegistry(tls, trustDomain),
    logger,
    onRenewed: tls.onChange,
    heartbeatMs,
  });
  return { ...agent, close: attachment.close };
}

/** Connections on which a device attaches, as the one that its certificate names. */
export function transportsToRegistry(tls: TlsSource, trustDomain: string): AttachOptions["transportTo"] {
  return (baseUrl) =>
    createServiceTransport({
      baseUrl,
      tls,
      serverName: { kind: "service", name: "registry", trustDomain },
      protocol: "grpc",
      // The link pings by itself, and before it is up it has a limit.
      pingIntervalMs: LINK_PINGS_MS,
    });
}
