import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { fault } from "../../../lib/fault/fault.ts";

/** How often each device may dial. */
export interface AttachRate {
  /** Takes one dial of the device's. Throws RATE_LIMITED where it has none left. */
  take(deviceId: string): void;
}

/** What is often. */
export interface AttachRateOptions {
  /** So many dials at once. Default 10. */
  burst?: number;
  /** So many a second after that. Default 1. */
  perSecond?: number;
  /** Milliseconds, never set back. Default the process's own clock. */
  now?: () => number;
}

/** Devices that are remembered before the full buckets among them are looked for. */
const SWEEP_AT = 1024;

/** A token bucket for each device: a dial costs a transaction that all replicas wait for. */
export function createAttachRate(options: AttachRateOptions = {}): AttachRate {
  const { burst = 10, perSecond = 1, now = () => performance.now() } = options;
  const buckets = new Map<string, { left: number; at: number }>();
  let sweepAt = SWEEP_AT;
  const leftIn = (deviceId: string, at: number): number => {
    const bucket = buckets.get(deviceId);
    return bucket === undefined ? burst : Math.min(burst, bucket.left + ((at - bucket.at) / 1000) * perSecond);
  };
  const sweep = (at: number): void => {
    if (buckets.size < sweepAt) return;
    for (const deviceId of buckets.keys()) if (leftIn(deviceId, at) >= burst) buckets.delete(deviceId);
    sweepAt = Math.max(SWEEP_AT, 2 * buckets.size);
  };

  return {
    take(deviceId) {
      const at = now();
      const left = leftIn(deviceId, at);
      if (left < 1) throw tooOften(perSecond, Math.ceil(((1 - left) / perSecond) * 1000));
      sweep(at);
      buckets.set(deviceId, { left: left - 1, at });
    },
  };
}

function tooOften(perSecond: number, retryMs: number): Error {
  const metadata = { limit: `${perSecond}/s`, retry_after_ms: String(retryMs) };
  const message = `the device attaches too often; try again in ${retryMs} ms`;
  return fault(ErrorReason.RATE_LIMITED, metadata, { message });
}
