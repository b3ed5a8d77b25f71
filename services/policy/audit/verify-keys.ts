import type { Record } from "../../../gen/ts/reeve/audit/v1/record_pb.ts";
import type { Finding } from "./finding.ts";
import type { Heads } from "./verify-heads.ts";

/** Checks that checkpoints were signed by keys that still signed then. */
export interface KeyCheck {
  /** Takes the next record. */
  take(index: number, record: Record): void;
  /** What is wrong, after the last record. */
  end(): Finding[];
}

/**
 * A key that the log says is retired must not be alone under a head over that record: whoever stole it later would make
 * heads with it.
 */
export function createKeyCheck(heads: Heads): KeyCheck {
  const retired = new Map<string, number>();
  return {
    take(index, { event }) {
      if (event.case !== "keyChanged" || event.value.role !== "checkpoint" || event.value.change !== "retired") return;
      retired.set(event.value.keyId, index);
    },
    end() {
      if (retired.size === 0) return [];
      const isLate = (keyId: string, size: number): boolean => (retired.get(keyId) ?? size) < size;
      return [...heads.bySize.values()]
        .flat()
        .filter(({ signers, size }) => signers.every((keyId) => isLate(keyId, size)))
        .map(({ size }) => {
          const message = `the checkpoint at ${size} is signed only by keys that had been retired before it`;
          return { kind: "bad_checkpoint", message };
        });
    },
  };
}
