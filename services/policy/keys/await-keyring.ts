import type { SignedEnvelope } from "../../../gen/ts/reeve/common/v1/signed_pb.ts";
import { KeyRole } from "../../../gen/ts/reeve/key/v1/key_service_pb.ts";
import type { KeyRing, Keys } from "./key-ring.ts";

/**
 * The keyrings for grants as soon as there is a newer version than the known one. Rejects with the
 * signal's reason when the caller gives up.
 */
export function awaitKeyring(ring: KeyRing, known: bigint, signal: AbortSignal): Promise<readonly SignedEnvelope[]> {
  return new Promise((resolve, reject) => {
    let stop = (): void => {};
    const onAbort = (): void => {
      stop();
      reject(signal.reason);
    };
    const look = ({ keyrings }: Keys): void => {
      const chain = keyrings[KeyRole.GRANT];
      // Versions begin with 1 and have no gap.
      if (BigInt(chain.length) <= known) return;
      stop();
      signal.removeEventListener("abort", onAbort);
      resolve(chain);
    };
    if (signal.aborted) return onAbort();
    signal.addEventListener("abort", onAbort, { once: true });
    stop = ring.onChange(look);
    look(ring.current());
  });
}
