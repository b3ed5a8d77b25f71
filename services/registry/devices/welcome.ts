import type { Transaction } from "kysely";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { faultDetail, reasonOf } from "../../../lib/fault/fault.ts";
import type { RegistryTables } from "../tables.ts";

/** What a device says of itself, and how it is reached. */
export interface ShownDevice {
  name: string;
  labels: Readonly<Record<string, string>>;
  /** The registry dials it, as its configuration says, so that it need not have enrolled. */
  isDialed: boolean;
}

/** A device that is linked, or wants to be. */
export interface HeldDevice {
  deviceId: string;
  /** Undefined: only its standing counts, not what it calls itself. */
  shown: ShownDevice | undefined;
}

/** Whether devices are welcome, for whoever keeps that. */
export interface Welcome {
  /** Rejects with DEVICE_LOCKED or IDENTITY_REFUSED where a device must not be linked. Default: all are welcome. */
  mayAttach?(deviceId: string, shown: ShownDevice): Promise<void>;
  /**
   * Which of many devices must not be linked, by id, with the fault that each gets: one look for all of them. Within a
   * transaction it sees what that sees. Default: only those who are told of by `checks` are asked about again.
   */
  refusals?(devices: readonly HeldDevice[], trx?: Transaction<RegistryTables>): Promise<ReadonlyMap<string, Error>>;
  /** A device was refused because its state is in two places. */
  onCloned?(deviceId: string): Promise<void>;
}

/** True where a device is locked, by an operator or because its state is in two places. */
export function isLocked(error: unknown): boolean {
  return reasonOf(error) === ErrorReason.DEVICE_LOCKED || faultDetail(error)?.metadata.why === "cloned";
}

/** True for a refusal that holds until somebody changes it. Anything else, such as a database that is away, passes. */
export function isShutOut(error: unknown): boolean {
  const reason = reasonOf(error);
  return reason === ErrorReason.IDENTITY_REFUSED || reason === ErrorReason.DEVICE_LOCKED;
}
