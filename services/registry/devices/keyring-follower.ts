import { setTimeout as sleep } from "node:timers/promises";
import { create } from "@bufbuild/protobuf";
import type { SignedEnvelope } from "../../../gen/ts/reeve/common/v1/signed_pb.ts";
import { type DeviceCommand, DeviceCommandSchema } from "../../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import { unverifiedVersion } from "../../../lib/sign/keyring.ts";

/** Which keys devices are to trust for grants. */
export interface TrustedKeys {
  /** What brings a device of a version up to date, in order; nothing where it is. */
  trustFor(version: bigint): DeviceCommand[];
  readonly version: bigint;
  onChange(listener: () => void): () => void;
}

/** The newest keyrings for grants, for devices to follow. The registry passes them on; only devices have to trust them. */
export interface KeyringFollower extends TrustedKeys {
  /** Stops following. */
  close(): Promise<void>;
}

/** What a follower needs. */
export interface KeyringFollowerOptions {
  /** The keyrings that lead to the newest, the oldest first, as soon as that is above the known version. */
  awaitKeyring(knownVersion: bigint, signal: AbortSignal): Promise<readonly SignedEnvelope[]>;
  /** Gets why policy could not answer; it is asked again. */
  onError(error: unknown): void;
}

/** From a failure to the next question, in milliseconds. */
const RETRY_MS = 1000;

/** Asks policy for the newest keyring, again and again; nothing is known until the first answer. */
export function followKeyring({ awaitKeyring, onError }: KeyringFollowerOptions): KeyringFollower {
  const closing = new AbortController();
  const { signal } = closing;
  const listeners = new Set<() => void>();
  let version = 0n;
  let steps: readonly { version: bigint; command: DeviceCommand }[] = [];

  const take = (chain: readonly SignedEnvelope[]): void => {
    const found = chain.map((keyring) => ({ version: unverifiedVersion(keyring), command: trustCommand(keyring) }));
    const newest = found.at(-1)?.version ?? 0n;
    if (newest <= version) throw new Error(`policy sent keyrings up to ${newest}, which is not above ${version}`);
    steps = found;
    version = newest;
    for (const listener of listeners) listener();
  };
  const follow = async (): Promise<void> => {
    while (!signal.aborted) {
      try {
        take(await awaitKeyring(version, signal));
      } catch (e: unknown) {
        if (signal.aborted) return;
        onError(e);
        await sleep(RETRY_MS, undefined, { signal }).catch(() => undefined);
      }
    }
  };
  const following = follow();

  return {
    get version() {
      return version;
    },
    trustFor: (known) => steps.filter((step) => step.version > known).map(({ command }) => command),
    onChange(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    async close() {
      closing.abort(new Error("the registry closes"));
      await following;
    },
  };
}

function trustCommand(keyring: SignedEnvelope): DeviceCommand {
  return create(DeviceCommandSchema, { command: { case: "trustKeyring", value: { keyring } } });
}
