import { createGroupCommit } from "../../../lib/store/group-commit.ts";
import type { Tool } from "../../../lib/tool/codec.ts";
import { createDeviceChanges } from "../devices/device-changes.ts";
import { createDeviceStore, forgetDevice, freeName, pinnedDevice, recheckDevice } from "../devices/device-store.ts";
import { createDeviceIndex, createDirectory, type Directory } from "../devices/directory.ts";
import { createFleet, type Fleet } from "../devices/fleet.ts";
import { followKeyring } from "../devices/keyring-follower.ts";
import type { Enrollment } from "../enrollment/enrollment.ts";
import { openEnrollment } from "../enrollment/extension.ts";
import type { Setup } from "../options.ts";
import type { PolicyLink } from "../policy-client/policy-link.ts";
import type { Cluster } from "./cluster.ts";
import type { State } from "./state.ts";

/** The devices: which may connect, which are connected, and how they are found. */
export interface Devices {
  enrollment: Enrollment;
  fleet: Fleet;
  directory: Directory;
}

/** Opens enrollment and, with the admissions that follow from it, the fleet, until `parts` are closed. */
export async function openDevices(
  setup: Setup,
  { db, self }: State,
  { membership, peers, lookMs }: Cluster,
  policy: PolicyLink,
  catalog: ReadonlyMap<string, Tool>,
  parts: AsyncDisposableStack,
): Promise<Devices> {
  const { config, logger, now } = setup;
  const keys = followKeyring({
    awaitKeyring: policy.awaitKeyring,
    onError: (err) => logger.warn({ err }, "policy does not say which keys devices are to trust"),
  });
  parts.defer(() => keys.close());
  const changes = createDeviceChanges();
  const enrollment = await openEnrollment(config.stateDir, setup.enrollment, {
    db,
    fleet: {
      recheck: recheckDevice,
      forget: forgetDevice,
      free: freeName,
      announce: changes.announce,
      pinned: (name) => pinnedDevice(db, name),
    },
    policy,
    logger,
    now,
  });
  parts.defer(() => enrollment.close());
  const writes = createGroupCommit(db);
  parts.defer(() => writes.close());
  const index = createDeviceIndex(config.localDevice, config.defaultDevice);
  const fleet = await createFleet({
    dialers: setup.devices,
    ...(config.heartbeatMs !== undefined && { heartbeatMs: config.heartbeatMs }),
    peers,
    directory: index,
    store: createDeviceStore(db, writes, self, now, (device, err) =>
      logger.error({ device, err }, "a device in the database cannot be read"),
    ),
    membership,
    keys,
    admission: setup.admission ?? enrollment,
    wake: () => peers?.wake(),
    pollMs: lookMs,
    catalog,
    toolsAllowed: config.toolsAllowed ?? [],
    logger,
    now,
  });
  parts.defer(() => fleet.close());
  changes.subscribe(fleet.announce);
  return { enrollment, fleet, directory: createDirectory(index, fleet.catchUp) };
}
