import type { DescService } from "@bufbuild/protobuf";
import type { ConnectRouter } from "@connectrpc/connect";
import { Gauge, type Registry as MetricsRegistry } from "prom-client";
import {
  type ControlFrame,
  DeviceAgentService,
  type DeviceFrame,
} from "../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import { deviceIdOf } from "../../lib/identity/device-id.ts";
import { loadSealingKey } from "../../lib/identity/seal.ts";
import { sealerWith } from "../../lib/identity/sealer.ts";
import type { StreamFactory } from "../../lib/link/stream.ts";
import type { Logger } from "../../lib/log/log.ts";
import { expiryMs, type SignedManifest } from "../../lib/owner-manifest/envelope.ts";
import { openSecrets } from "../../lib/secrets/store.ts";
import { createBatchSigner } from "../../lib/sign/batch.ts";
import { createBatchVerifier } from "../../lib/sign/batch-verifier.ts";
import { loadOrCreateKeyFile } from "../../lib/sign/key-file.ts";
import type { SigningKey, VerifyKey } from "../../lib/sign/keys.ts";
import { GRANT_TYPE, RECEIPT_TYPE } from "../../lib/sign/payload-types.ts";
import type { FolderLock } from "../../lib/store/folder-lock.ts";
import { AGENT_VERSION } from "./agent-version.ts";
import {
  DEFAULT_MAX_RUNNING,
  DEFAULT_OPERATOR_PLACES,
  DEFAULT_OUTPUT_LIMITS,
  DEFAULT_RETENTION_MS,
  type DeviceAgentConfig,
} from "./config.ts";
import { createEndings } from "./execute/endings.ts";
import { createExecutions, type ExecutionOptions, type Executions, notReady } from "./execute/executions.ts";
import type { OwnerDemands } from "./execute/prepare.ts";
import type { ReceiptIssuer } from "./execute/receipts.ts";
import { reconcileInterrupted } from "./execute/reconcile-interrupted.ts";
import { createSlots } from "./execute/slots.ts";
import { meets } from "./executor/sandbox/isolation.ts";
import { floorOf } from "./executor/sandbox/levels.ts";
import { type GrantKeyring, openGrantKeyring } from "./grants/keyring.ts";
import { openLedger } from "./ledger/ledger.ts";
import { keepRetention } from "./ledger/retention.ts";
import type { GrantTrust } from "./link/link.ts";
import { type Machine, openMachine } from "./machine.ts";
import { boundedBy } from "./manifest/bounds.ts";
import type { SealedManifest } from "./manifest/manifest.ts";
import { openOwnerManifest } from "./manifest/owner.ts";
import { openOutputFolder } from "./output/output-folder.ts";
import { createOutputs } from "./output/outputs.ts";
import type { ToolProvider } from "./providers/provider.ts";
import { deviceRoutes, openLink } from "./routes.ts";
import { lockStateDir, openStateDir, type StateDir } from "./state-dir.ts";
import { openToolsets, type Toolsets } from "./toolset.ts";
import { openUndoJournal } from "./undo/journal.ts";

export interface DeviceAgentOptions {
  config: DeviceAgentConfig;
  /** The lock on the state folder, where it is taken already; the agent releases it when it closes. Default: taken here. */
  lock?: FolderLock;
  /** The keys that sign grants, to begin with: the device follows to newer ones, and keeps those it followed to. */
  grantKeys: readonly VerifyKey[];
  /** The version of the keyring that these are from: only newer ones are followed to. Default 0: not known. */
  keyringVersion?: bigint;
  /** Providers of tools besides the built-in ones and the listed services. The agent disposes of them. Default none. */
  providers?: readonly ToolProvider[];
  logger: Logger;
  /** The agent's environment, of which programs get a few variables. */
  env: Readonly<Record<string, string | undefined>>;
  /** Where the device's own metrics go. Default nowhere. */
  metrics?: MetricsRegistry;
  /** Milliseconds since 1970. Default Date.now. */
  now?: () => number;
}

export interface DeviceAgent {
  routes(router: ConnectRouter): void;
  services: DescService[];
  /** The link for a registry in the same process. */
  link: StreamFactory<ControlFrame, DeviceFrame>;
  /** The link for a registry that the device dials. `attachCount`: how often it has dialed, this time included. */
  linkAs(attachCount: bigint): StreamFactory<ControlFrame, DeviceFrame>;
  /** Aborted when the agent begins to close. */
  draining: AbortSignal;
  /** False once it closes. Calls that an earlier process left behind have been ended before it is made. */
  ready(): boolean;
  /** Stops all calls with their process trees, reports their ends, ends the links and closes the ledger. Safe to repeat. */
  close(): Promise<void>;
  deviceId: string;
  /** How far it can keep programs apart, and why that is not further. */
  sandbox: Pick<Machine["executor"], "isolation" | "shortfall">;
  /** The active manifest. It is replaced when the tools change. */
  manifest(): SealedManifest;
}

/**
 * Makes a device agent: opens its state, finds out what the machine can do, signs the manifest, and ends calls that
 * an earlier process left without an end. Rejects with FolderInUse, before anything is read, where another process has the
 * state folder: ending that one's calls would call those interrupted that still run. Rejects as well where there is no grant
 * key, where a root does not exist, and where the state cannot be read.
 */
export async function createDeviceAgent(options: DeviceAgentOptions): Promise<DeviceAgent> {
  if (options.grantKeys.length === 0) throw new Error("the device agent needs at least one key that signs grants");
  const now = options.now ?? Date.now;
  // Closes what was opened so far where a later step fails.
  await using parts = new AsyncDisposableStack();
  const lock = options.lock ?? lockStateDir(options.config.stateDir);
  parts.defer(() => lock.release());
  const self = await openSelf(options, now, parts);
  const sealer = sealerWith(await loadSealingKey(self.state.sealingKeyFile));
  const ledger = parts.adopt(await openLedger(self.state.ledgerFile, sealer), (opened) => opened.close());
  const endings = createEndings({ ledger, issuer: issuerOf(self), now });
  const interrupted = await reconcileInterrupted(ledger, endings);
  if (interrupted > 0) options.logger.warn({ calls: interrupted }, "calls were cut off when the agent last ended");
  const undo = parts.use(openUndoJournal({ folder: self.state.undoFolder, sealer, now }));
  const onLost = (error: unknown): void => options.logger.error({ err: error }, "what calls print could not be kept");
  const limits = options.config.output ?? DEFAULT_OUTPUT_LIMITS;
  const folder = openOutputFolder(self.state.outputFolder, limits, { now, onError: onLost });
  const outputs = createOutputs(folder, sealer, onLost);
  const secrets = openSecrets(self.state.secretsFolder, sealer);
  const executions = createCalls(options, self, { ledger, endings, outputs, undo, secrets, now });
  measureCalls(options.metrics, executions);
  const prune = (beforeMs: number): Promise<number> => {
    folder.prune();
    return ledger.prune(beforeMs);
  };
  const retention = keepRetention({ prune }, options.config.retentionMs ?? DEFAULT_RETENTION_MS, now, (error) =>
    options.logger.error({ err: error }, "the ledger could not be pruned"),
  );
  parts.defer(() => retention.stop());
  const closed = new AbortController();
  // After the calls, so that their last ends still go out on the links; before the ledger, which then knows no more.
  parts.defer(() => closed.abort(notReady()));
  parts.defer(() => executions.close());
  const owned = parts.move();
  let closing: Promise<void> | undefined;
  const trust = trustOf(self.keyring, options.logger);
  const draining = new AbortController();
  const offered = {
    executions,
    trust,
    toolsets: self.toolsets,
    closed: closed.signal,
    draining: draining.signal,
    heartbeatMs: options.config.heartbeatMs,
  };
  return {
    routes: deviceRoutes(offered),
    link: openLink(offered),
    linkAs: (attachCount) => openLink(offered, attachCount),
    services: [DeviceAgentService],
    ready: () => closing === undefined,
    close() {
      draining.abort(notReady());
      closing ??= owned.disposeAsync();
      return closing;
    },
    draining: draining.signal,
    deviceId: self.deviceId,
    sandbox: self.machine.executor,
    manifest: () => self.toolsets.current().manifest,
  };
}

/** Exports reeve_device_calls_open. */
function measureCalls(registry: MetricsRegistry | undefined, executions: Pick<Executions, "size">): void {
  if (registry === undefined) return;
  new Gauge({
    name: "reeve_device_calls_open",
    help: "Calls that the device runs, and those that wait for a place",
    registers: [registry],
    collect() {
      this.set(executions.size);
    },
  });
}

interface Self {
  state: StateDir;
  key: SigningKey;
  keyring: GrantKeyring;
  deviceId: string;
  machine: Machine;
  toolsets: Toolsets;
}

async function openSelf(options: DeviceAgentOptions, now: () => number, parts: AsyncDisposableStack): Promise<Self> {
  const { env, logger } = options;
  const state = await openStateDir(options.config.stateDir);
  const { config, owner } = await withinManifest(options.config, state, now());
  const { key } = await loadOrCreateKeyFile(state.keyFile);
  const { grantKeys: pins, keyringVersion: pinnedVersion = 0n } = options;
  const keyring = await openGrantKeyring({ file: state.grantKeysFile, pins, pinnedVersion });
  const machine = parts.use(await openMachine(config, state, env, options.providers, owner));
  if (machine.roots.granted.length === 0) logger.warn({}, "no folder is granted: file tools refuse every path");
  for (const { folder, why } of machine.executor.droppedFolders)
    logger.warn({ folder, why }, "no program is taken from a folder of the PATH");
  const { isolation, shortfall } = machine.executor;
  if (shortfall === "") logger.info({ sandbox: isolation }, "sandbox ready");
  else logger.warn({ sandbox: isolation, why: shortfall }, "no sandbox: what needs one is refused or held");
  const demands = owner && demandsOf(owner);
  if (demands !== undefined && !meets(isolation, demands.floor))
    logger.error(
      { sandbox: isolation, floor: demands.floor },
      "sandbox below the floor of the owner's manifest: every call is refused",
    );
  const toolsets = await openToolsets({
    providers: machine.providers,
    choice: { ...config, granted: owner?.manifest.capabilities },
    owner: demands,
    facts: machine.facts,
    key,
    manifestFile: state.manifestFile,
    agentVersion: AGENT_VERSION,
    now,
    onError: (error) => logger.error({ err: error }, "changed tools not announced"),
  });
  parts.use(toolsets);
  warnOf(toolsets, logger);
  parts.defer(
    toolsets.onChange(() => {
      logger.info({ manifest: toolsets.current().manifestDigest }, "tools changed");
      warnOf(toolsets, logger);
    }),
  );
  return { state, key, keyring, deviceId: deviceIdOf(key), machine, toolsets };
}

/** The settings within the owner's manifest, where there is one. */
async function withinManifest(config: DeviceAgentConfig, { ownerTrustFile }: StateDir, nowMs: number) {
  const { owner: settings = { keys: [], unstated: new Set() } } = config;
  const owner = await openOwnerManifest({ ...settings, trustFile: ownerTrustFile, device: config.name, nowMs });
  if (owner === undefined) return { config, owner };
  return { config: boundedBy(config, owner.manifest, settings.unstated), owner };
}

/** A level that this version of the agent does not know is the strictest that it knows. */
function demandsOf({ manifest }: SignedManifest): OwnerDemands {
  return { expiresMs: expiryMs(manifest), floor: floorOf(manifest.sandbox) ?? "read_only" };
}

function warnOf(toolsets: Toolsets, logger: Logger): void {
  const { unavailable, known, unknownCapabilities } = toolsets.current();
  for (const { tool, why } of unavailable.values())
    if (!known.has(tool)) logger.warn({ tool, why }, "announced tool unavailable");
  if (unknownCapabilities.length > 0)
    logger.warn({ capabilities: unknownCapabilities }, "the configuration grants what no tool needs");
}

/** What links do with the keys that sign grants. */
function trustOf(keyring: GrantKeyring, logger: Logger): GrantTrust {
  return {
    version: () => keyring.version,
    async follow(envelope) {
      try {
        if (await keyring.trust(envelope)) logger.info({ version: String(keyring.version) }, "grant keys changed");
      } catch (err: unknown) {
        logger.warn({ err }, "keyring not accepted");
      }
    },
  };
}

function issuerOf({ key, deviceId, toolsets }: Self): ReceiptIssuer {
  const signer = createBatchSigner({ key, statementType: RECEIPT_TYPE });
  const manifestDigest = () => toolsets.current().manifestDigest;
  return { signer, deviceId, manifestDigest };
}

function createCalls(
  { config, logger }: DeviceAgentOptions,
  { keyring, deviceId, toolsets, machine }: Self,
  shared: Pick<ExecutionOptions, "ledger" | "endings" | "outputs" | "undo" | "secrets" | "now">,
): Executions {
  const { executor, roots, hosts } = machine;
  return createExecutions({
    ...shared,
    slots: createSlots(config.maxRunning ?? DEFAULT_MAX_RUNNING, config.operatorPlaces ?? DEFAULT_OPERATOR_PLACES),
    executor,
    roots,
    hosts,
    onUnexpected: (callId, error) => logger.error({ callId, err: error }, "a call failed unexpectedly"),
    verifier: createBatchVerifier({ keyring, statementType: GRANT_TYPE }),
    deviceId,
    offered: toolsets.current,
  });
}
