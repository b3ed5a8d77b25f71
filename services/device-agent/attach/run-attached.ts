import type { TlsSource } from "../../../lib/identity/tls-source.ts";
import { createLogger, type Level, type Logger } from "../../../lib/log/log.ts";
import type { ProbeSettings } from "../../../lib/run/probe-keys.ts";
import { openTls, type TlsSettings } from "../../../lib/run/tls-keys.ts";
import { createHealthState } from "../../../lib/server/health-state.ts";
import { createMetrics, type Metrics } from "../../../lib/server/metrics.ts";
import { createProbe } from "../../../lib/server/probe.ts";
import { shareScratchBuffer } from "../../../lib/wire/scratch-writer.ts";

export interface AttachedProcessOptions extends TlsSettings, ProbeSettings {
  logLevel: Level;
  /** Makes the agent, which dials out by itself. */
  create(parts: AgentParts): Promise<{ ready(): boolean; close(): Promise<void> }>;
}

/** What an agent is made with, whatever its process serves. */
export interface AgentParts {
  logger: Logger;
  tls: TlsSource | undefined;
  metrics: Metrics;
}

/** Runs an agent that only dials out: no port is open, but one for probes where it is asked for. */
export async function runAttached(options: AttachedProcessOptions): Promise<{ close(): Promise<void> }> {
  shareScratchBuffer();
  const { probeHost, probePort } = options;
  const logger = createLogger({ service: "device-agent", level: options.logLevel });
  const tls = openTls(options, logger);
  const metrics = createMetrics();
  const agent = await options.create({ logger, tls, metrics });
  const health = createHealthState(agent.ready);
  const probe =
    probePort === undefined
      ? undefined
      : await createProbe({
          ...(probeHost !== undefined && { host: probeHost }),
          port: probePort,
          health,
          metrics,
          logger,
        }).catch(async (error: unknown): Promise<never> => {
          // A start that fails leaves nothing running, and its folder to the next one.
          await agent.close();
          tls?.close();
          throw error;
        });
  logger.info({ probe: probe?.url }, "ready");
  let closing: Promise<void> | undefined;
  const close = async (): Promise<void> => {
    health.drain();
    await agent.close();
    await probe?.close();
    tls?.close();
    logger.info("stopped");
  };
  return { close: () => (closing ??= close()) };
}
