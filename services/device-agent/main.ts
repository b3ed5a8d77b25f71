import { readFile } from "node:fs/promises";
import { type ConfigOf, readConfig } from "../../lib/config/config.ts";
import { runGuarded } from "../../lib/run/run-guarded.ts";
import { runService, untilSignal } from "../../lib/run/run-service.ts";
import type { VerifyKey } from "../../lib/sign/keys.ts";
import type { FolderLock } from "../../lib/store/folder-lock.ts";
import { attachedAgent } from "./attach/attached-agent.ts";
import { type AgentParts, runAttached } from "./attach/run-attached.ts";
import { DEFAULT_PORT, deviceEnvironment, joinEnvironment } from "./config.ts";
import { deviceConfigOf, ownerKeysOf } from "./device-config.ts";
import { type Enrolled, type Joining, openEnrolled } from "./identity/enrolled.ts";
import { type DeviceEnrollment, enrollmentFiles } from "./identity/enrollment-file.ts";
import { keepRenewed, requireUnexpired } from "./identity/renewal.ts";
import { pinOwnerKeys } from "./manifest/owner.ts";
import { createDeviceAgent } from "./service.ts";
import { parseKeys, parseRegistryUrls } from "./settings.ts";
import { lockStateDir, ownerTrustFile } from "./state-dir.ts";

type Settings = ConfigOf<typeof deviceEnvironment>;

export interface RunningDeviceAgent {
  close(): Promise<void>;
  /** Rejects when the certificate has expired and the agent has closed: the device has to enroll again. */
  expired: Promise<never>;
}

/**
 * Runs a device agent in a process of its own, as the environment says: it dials a registry, listens, or does both. A
 * device that joins, or has joined, starts with what its folder holds, and keeps its certificate renewed. Rejects with
 * FolderInUse, before anything is read or joined, where another process has the folder.
 */
export async function runDeviceAgent(
  env: Readonly<Record<string, string | undefined>>,
  joining: Omit<Joining, "tokenFile"> = {},
): Promise<RunningDeviceAgent> {
  const start = readConfig(joinEnvironment, env);
  const lock = lockStateDir(start.stateDir);
  try {
    const enrolled = await openEnrolled(start.stateDir, env, { ...joining, tokenFile: start.joinTokenFile });
    return await runEnrolled(enrolled, env, lock);
  } catch (error: unknown) {
    lock.release();
    throw error;
  }
}

/** Makes this machine a device and does not run it. Resolves with what it is from then on. Rejects as runDeviceAgent does. */
export async function joinDevice(
  env: Readonly<Record<string, string | undefined>>,
  joining: Omit<Joining, "tokenFile"> & { token: string },
): Promise<DeviceEnrollment> {
  const { stateDir } = readConfig(joinEnvironment, env);
  const lock = lockStateDir(stateDir);
  try {
    const { enrollment } = await openEnrolled(stateDir, env, joining);
    const keys = ownerKeysOf(readConfig({ manifestKeys: deviceEnvironment.manifestKeys }, env));
    await pinOwnerKeys({ keys, trustFile: ownerTrustFile(stateDir) });
    if (enrollment !== undefined) return enrollment;
    throw new Error("joining with a token left no enrollment");
  } finally {
    lock.release();
  }
}

async function runEnrolled(
  enrolled: Enrolled,
  env: Readonly<Record<string, string | undefined>>,
  lock: FolderLock,
): Promise<RunningDeviceAgent> {
  const settings = readConfig(deviceEnvironment, enrolled.env);
  const config = { ...deviceConfigOf(settings, enrolled.env), stateDir: settings.stateDir };
  const grantKeys = await grantKeysOf(settings);
  const keyringVersion = BigInt(enrolled.enrollment?.keyringVersion ?? 0);
  const urls = parseRegistryUrls(settings.registryUrl ?? "", deviceEnvironment.registryUrl.name);
  const { stateDir, heartbeat: heartbeatMs, trustDomain, port } = settings;
  const files = enrolled.enrollment && enrollmentFiles(stateDir, enrolled.enrollment.id);
  if (files !== undefined) await requireUnexpired(files, Date.now());
  const expired = Promise.withResolvers<never>();
  expired.promise.catch(() => undefined); // the one that waits for it gets the error
  const create = async ({ logger, tls, metrics }: AgentParts) => {
    const agent = await createDeviceAgent({
      config,
      lock,
      grantKeys,
      keyringVersion,
      logger,
      env,
      metrics: metrics.registry,
    });
    if (urls.length === 0) return { ...agent, onListening: lock.listensAt };
    const settings = { urls, stateDir, heartbeatMs, tls, trustDomain, logger };
    const attached = await attachedAgent(agent, settings).catch(async (error: unknown): Promise<never> => {
      await agent.close();
      throw error;
    });
    if (files === undefined) return attached;
    const onExpired = (error: Error) =>
      void running.then((one) => one.close()).then(() => expired.reject(error), expired.reject);
    const renewal = await keepRenewed({ files, urls, trustDomain, logger, onExpired });
    return { ...attached, close: () => Promise.all([renewal.close(), attached.close()]).then(() => undefined) };
  };
  const running: Promise<{ close(): Promise<void> }> =
    urls.length > 0 && port === undefined
      ? runAttached({ ...settings, create })
      : runService({
          ...settings,
          tokensFile: tokensFileOf(settings),
          port: port ?? DEFAULT_PORT,
          name: "device-agent",
          acceptServices: ["registry"],
          create,
        });
  return { close: (await running).close, expired: expired.promise };
}

/** Runs until a signal asks for the end, or until the certificate has expired, which rejects. */
export async function runUntilEnd(running: RunningDeviceAgent): Promise<void> {
  await Promise.race([untilSignal(running, process), running.expired]);
}

function tokensFileOf({ tokensFile }: Settings): string {
  if (tokensFile !== undefined) return tokensFile;
  throw new Error(`${deviceEnvironment.tokensFile.name} must be set where the device listens`);
}

async function grantKeysOf({ grantKey, grantKeyFile }: Settings): Promise<VerifyKey[]> {
  if (grantKey !== undefined) return parseKeys(grantKey, deviceEnvironment.grantKey.name);
  const variable = deviceEnvironment.grantKeyFile.name;
  if (grantKeyFile === undefined) throw new Error(`${deviceEnvironment.grantKey.name} or ${variable} must be set`);
  return parseKeys(await readFile(grantKeyFile, "utf8"), variable);
}

if (import.meta.main) {
  await runGuarded({ name: "device-agent", start: () => runDeviceAgent(process.env), until: runUntilEnd });
}
