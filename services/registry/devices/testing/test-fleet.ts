import { create, fromBinary } from "@bufbuild/protobuf";
import { FramingSchema } from "../../../../gen/ts/reeve/common/v1/framing_pb.ts";
import { SignedEnvelopeSchema } from "../../../../gen/ts/reeve/common/v1/signed_pb.ts";
import { AttachRequestSchema } from "../../../../gen/ts/reeve/device/v1/attach_service_pb.ts";
import {
  type DeviceCommand,
  type DeviceEvent,
  DeviceEventSchema,
  type DeviceFrame,
  DeviceFrameSchema,
} from "../../../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import { createBatchQueue } from "../../../../lib/async/batch-queue.ts";
import { deviceIdOf } from "../../../../lib/identity/device-id.ts";
import { createLogger } from "../../../../lib/log/log.ts";
import { generateSigningKey } from "../../../../lib/sign/keys.ts";
import { type Database, openDatabase } from "../../../../lib/store/database.ts";
import { createGroupCommit } from "../../../../lib/store/group-commit.ts";
import { builtInTools } from "../../../../lib/toolschema/built-in-tools.ts";
import { joinCluster, newReplicaId } from "../../cluster/membership.ts";
import { testManifest } from "../../enrollment/testing/test-device.ts";
import { type RegistryTables, registryMigrations } from "../../tables.ts";
import type { AdmissionPolicy } from "../admission.ts";
import type { DeviceDialer } from "../device-link.ts";
import { createDeviceStore } from "../device-store.ts";
import { createDeviceIndex, type DeviceIndex } from "../directory.ts";
import { createFleet, type Fleet } from "../fleet.ts";
import type { Sessions } from "../sessions.ts";

/** How often streams send heartbeats in these tests, in milliseconds. */
export const HEARTBEAT_MS = 100;

const logger = createLogger({ service: "test", level: "silent" });

/** A fleet with a place to attach. */
export interface TestFleet {
  fleet: Fleet;
  directory: DeviceIndex;
  sessions: Fleet["sessions"];
  db: Database<RegistryTables>;
  close(): Promise<void>;
}

/** What a test may choose. */
export interface TestFleetOptions {
  admission?: AdmissionPolicy;
  /** Devices that are dialed, by name. */
  dialers?: ReadonlyMap<string, DeviceDialer>;
  /** A database of several fleets. Default: one of its own in memory. */
  db?: Database<RegistryTables>;
}

/** Opens a fleet on a database in memory, or on one that others use too. */
export async function openTestFleet(options: TestFleetOptions = {}): Promise<TestFleet> {
  const { admission = {}, dialers = new Map() } = options;
  const db = options.db ?? (await openDatabase<RegistryTables>({ path: ":memory:", migrations: registryMigrations }));
  const writes = createGroupCommit(db);
  const self = newReplicaId();
  const membership = await joinCluster({ db, self, logger, ttlMs: 5000, renewMs: 1500, now: Date.now });
  const directory = createDeviceIndex();
  const fleet: Fleet = await createFleet({
    dialers,
    heartbeatMs: HEARTBEAT_MS,
    peers: undefined,
    directory,
    store: createDeviceStore(db, writes, self, Date.now),
    membership,
    admission,
    wake: () => undefined,
    pollMs: 20,
    catalog: builtInTools(),
    toolsAllowed: [],
    logger,
    now: Date.now,
  });
  return {
    fleet,
    directory,
    sessions: fleet.sessions,
    db,
    async close() {
      await fleet.close();
      await writes.close();
      await membership.close();
      if (options.db === undefined) await db.destroy();
    },
  };
}

/** A stream that a device has opened. */
export interface TestStream {
  /** Says more. */
  say(...events: DeviceEvent[]): void;
  /** Hangs up. */
  leave(): void;
  /** The commands it got. */
  commands: DeviceCommand["command"][];
  /** Resolves at the end with the error that it ended with, if any. */
  over: Promise<unknown>;
  isOver(): boolean;
}

/** A device as the registry sees it, which says whatever a test wants. */
export function shownDevice(name = "nas") {
  const key = generateSigningKey();
  const id = deviceIdOf(key);
  const hello = (attachCount: bigint, labels: Readonly<Record<string, string>> = { role: "dev" }): DeviceEvent => {
    const manifest = fromBinary(SignedEnvelopeSchema, testManifest(key, { name, labels }));
    return create(DeviceEventSchema, { event: { case: "hello", value: { manifest, attachCount } } });
  };
  return {
    id,
    name,
    key,
    hello,
    attach: (sessions: Pick<Sessions, "attach">, ...events: DeviceEvent[]) => attach(sessions, id, events),
  };
}

function attach(sessions: Pick<Sessions, "attach">, id: string, first: DeviceEvent[]): TestStream {
  const outgoing = createBatchQueue<DeviceEvent[]>();
  const leaving = new AbortController();
  const commands: DeviceCommand["command"][] = [];
  let isOver = false;
  outgoing.push(first);
  // An empty frame is a heartbeat.
  const heartbeat = setInterval(() => outgoing.push([]), HEARTBEAT_MS / 2);
  const run = async (): Promise<unknown> => {
    try {
      for await (const { frame } of sessions.attach(id, framed(outgoing.batches()), leaving.signal)) {
        commands.push(...(frame?.commands ?? []).map(({ command }) => command));
      }
      return undefined;
    } catch (error: unknown) {
      return error;
    } finally {
      isOver = true;
      clearInterval(heartbeat);
    }
  };
  return {
    say: (...events) => outgoing.push(events),
    leave: () => leaving.abort(new Error("the device hangs up")),
    commands,
    over: run(),
    isOver: () => isOver,
  };
}

async function* framed(batches: AsyncIterable<DeviceEvent[][]>) {
  let number = 0n;
  for await (const batch of batches) {
    for (const events of batch) {
      const opening = number === 0n ? { heartbeatMs: HEARTBEAT_MS, windowBytes: 1_000_000n } : {};
      const framing = create(FramingSchema, { number: ++number, ...opening });
      yield create(AttachRequestSchema, { frame: create(DeviceFrameSchema, { events, framing }) });
    }
  }
}

/** A device that is dialed: says its Hello, and notes its commands. */
export function dialedDevice(hello: () => DeviceEvent) {
  const commands: DeviceCommand["command"][] = [];
  let gone = Promise.withResolvers<void>();
  let back = Promise.resolve();
  const dialed = {
    commands,
    dials: 0,
    /** Hangs up, and comes back when it may. */
    hangUp(until: Promise<void>) {
      back = until;
      gone.resolve();
    },
    async *dialer(requests: Parameters<DeviceDialer>[0], signal: AbortSignal): AsyncGenerator<DeviceFrame> {
      dialed.dials++;
      await back;
      gone = Promise.withResolvers();
      void (async () => {
        for await (const request of requests) commands.push(...request.commands.map(({ command }) => command));
      })();
      yield create(DeviceFrameSchema, { events: [hello()] });
      const left = new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
      if (!signal.aborted) await Promise.race([left, gone.promise]);
    },
  };
  return dialed;
}
