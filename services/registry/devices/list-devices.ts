import { create } from "@bufbuild/protobuf";
import type { Device, DeviceLock } from "../../../gen/ts/reeve/device/v1/device_pb.ts";
import {
  type ListDevicesRequest,
  type ListDevicesResponse,
  ListDevicesResponseSchema,
} from "../../../gen/ts/reeve/device/v1/device_service_pb.ts";
import { pageOf } from "../pages.ts";
import type { Directory } from "./directory.ts";
import { type KnownDevice, toDevice } from "./linked-device.ts";

/** The locks there are, by the devices' ids. */
export type Locks = () => Promise<ReadonlyMap<string, DeviceLock>>;

/** Devices as callers see them, with the locks of those that are locked. */
export async function withLocks(known: readonly KnownDevice[], locks: Locks): Promise<Device[]> {
  const locked = await locks();
  return known.map((one) => {
    const lock = locked.get(one.id);
    return lock === undefined ? toDevice(one) : { ...toDevice(one), lock };
  });
}

/** The devices, by name, a page at a time. */
export async function listDevices(
  directory: Directory,
  locks: Locks,
  request: ListDevicesRequest,
): Promise<ListDevicesResponse> {
  const { page, nextPageToken } = pageOf(directory.all(), request.pageSize, request.pageToken, 100);
  return create(ListDevicesResponseSchema, { devices: await withLocks(page, locks), nextPageToken });
}
