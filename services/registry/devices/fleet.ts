import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { type Envelope, EnvelopeSchema } from "../../../gen/ts/reeve/common/v1/signed_pb.ts";
import type { Manifest } from "../../../gen/ts/reeve/device/v1/manifest_pb.ts";
import type { Logger } from "../../../lib/log/log.ts";
import { createBatchVerifier } from "../../../lib/sign/batch-verifier.ts";
import { createKeyring, verifyKeyFromRaw } from "../../../lib/sign/keys.ts";
import { RECEIPT_TYPE } from "../../../lib/sign/payload-types.ts";
import type { Database } from "../../../lib/store/database.ts";
import type { GroupCommit } from "../../../lib/store/group-commit.ts";
import type { RegistryTables } from "../tables.ts";
import { type BuiltInTool, offeredTools } from "../tools/offered.ts";
import { createDeviceLink, type DeviceLink, type DeviceOpener } from "./device-link.ts";
import type { Directory } from "./directory.ts";
import type { KnownDevice } from "./linked-device.ts";
import { checkManifest } from "./pin.ts";

/** The devices that the registry dials, each by the name it was configured with. */
export interface Fleet {
  /** The link to a device, by the device's id. */
  link(deviceId: string): DeviceLink | undefined;
  /** Resolves when every device has been linked once, or after `ms`. */
  settled(ms: number): Promise<void>;
  close(): Promise<void>;
}

/** What the fleet rests on. */
export interface FleetOptions {
  /** The way to each device, by its name. */
  openers: ReadonlyMap<string, DeviceOpener>;
  directory: Directory;
  catalogue: ReadonlyMap<string, BuiltInTool>;
  /** Names of tools that callers may use; empty keeps everything. */
  toolsAllowed: readonly string[];
  db: Database<RegistryTables>;
  writes: GroupCommit<RegistryTables>;
  logger: Logger;
  now(): number;
}

/**
 * Dials every device and holds the links. A name is pinned to the key that it shows first: a device that comes later
 * with another key is refused.
 */
export async function createFleet(options: FleetOptions): Promise<Fleet> {
  const { directory, db, writes, logger, now } = options;
  const pinned = new Map<string, Uint8Array>();
  for (const row of await db.selectFrom("devices").selectAll().execute()) {
    pinned.set(row.name, row.public_key);
    const check = checkManifest(fromBinary(EnvelopeSchema, row.manifest), row.name, row.public_key);
    if (check.ok) directory.put(known(check.manifest, check.digest, row.last_seen_ms, false));
  }

  function known(manifest: Manifest, manifestDigest: string, lastSeenMs: number, online: boolean): KnownDevice {
    const { tools, unknown } = offeredTools(manifest, options.catalogue, options.toolsAllowed);
    for (const name of unknown) {
      logger.warn({ tool: name, device: manifest.name }, "tools_allowed lists a tool that does not exist; dropped");
    }
    return {
      id: manifest.deviceId,
      name: manifest.name,
      manifest,
      manifestDigest,
      tools,
      labels: Object.fromEntries(manifest.labels.map(({ key, value }) => [key, value])),
      receipts: createBatchVerifier({
        keyring: createKeyring([verifyKeyFromRaw(manifest.publicKey)]),
        statementType: RECEIPT_TYPE,
      }),
      online,
      lastSeenMs,
    };
  }

  const links = new Map<string, DeviceLink>();
  const firsts: Promise<void>[] = [];
  for (const [name, opener] of options.openers) {
    const first = Promise.withResolvers<void>();
    firsts.push(first.promise);
    let current: KnownDevice | undefined;
    const onHello = (envelope: Envelope | undefined): boolean => {
      const check = checkManifest(envelope, name, pinned.get(name));
      if (!check.ok || envelope === undefined) {
        logger.error({ device: name, problem: check.ok ? "no manifest" : check.problem }, "a device is not trusted");
        return false;
      }
      const { manifest, digest } = check;
      pinned.set(name, manifest.publicKey);
      current = known(manifest, digest, now(), true);
      directory.put(current);
      const row = { public_key: manifest.publicKey, manifest: toBinary(EnvelopeSchema, envelope), last_seen_ms: now() };
      writes.writeLazily(async (trx) => {
        await trx
          .insertInto("devices")
          .values({ name, id: manifest.deviceId, ...row })
          .onConflict((conflict) => conflict.column("name").doUpdateSet(row))
          .execute();
      });
      logger.info({ device: name, device_id: manifest.deviceId, tools: current.tools.size }, "device linked");
      first.resolve();
      return true;
    };
    const onDown = () => {
      if (current !== undefined) Object.assign(current, { online: false, lastSeenMs: now() });
      logger.warn({ device: name }, "device unlinked");
    };
    links.set(name, createDeviceLink({ opener, onHello, onDown }));
  }

  return {
    link: (deviceId) => links.get(directory.byId(deviceId)?.name ?? ""),
    async settled(ms) {
      const timeout = Promise.withResolvers<void>();
      const timer = setTimeout(timeout.resolve, ms);
      await Promise.race([Promise.all(firsts), timeout.promise]);
      clearTimeout(timer);
    },
    async close() {
      await Promise.all([...links.values()].map((link) => link.close()));
    },
  };
}
