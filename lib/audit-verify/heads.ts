import { type AuditRecord, KeyChange } from "../../gen/ts/reeve/audit/v1/record_pb.ts";
import { KeyRole } from "../../gen/ts/reeve/key/v1/key_service_pb.ts";
import { type Checkpoint, verifyCheckpointByAny } from "../sign/checkpoint.ts";
import type { NoteKey } from "../sign/note.ts";
import type { Finding } from "./finding.ts";
import type { StoredCheckpoint } from "./log-source.ts";

/** A checkpoint whose signature holds, and where it is from. */
export interface TrustedHead extends Checkpoint {
  from: "log" | "witness";
  /** The ids of the keys that signed it. */
  signers: readonly string[];
}

/** The heads that a log is measured against, by size, and what is wrong with the others. */
export interface Heads {
  bySize: Map<number, TrustedHead[]>;
  /** The largest size that was ever signed. */
  newest: number;
  /** The largest size that the log itself keeps a checkpoint of: so far its tree is stored. */
  built: number;
  findings: Finding[];
  /** How many checkpoints the log itself keeps. */
  kept: number;
}

/**
 * Verifies the signatures of a log's checkpoints, and of those that a witness has kept. One of the keys that the
 * log has had must have signed each.
 */
export async function collectHeads(
  checkpoints: AsyncIterable<StoredCheckpoint>,
  witness: readonly string[],
  keys: readonly [NoteKey, ...NoteKey[]],
): Promise<Heads> {
  const { name } = keys[0];
  const heads: Heads = { bySize: new Map(), newest: 0, built: 0, findings: [], kept: 0 };
  for await (const { size, note } of checkpoints) {
    heads.kept += 1;
    const verified = verifyCheckpointByAny(note, keys);
    if (!verified.ok) reject(heads, `the checkpoint at ${size} is not signed by ${name}: ${verified.kind}`);
    else if (verified.checkpoint.size !== size) reject(heads, `the checkpoint filed under ${size} is of another size`);
    else trust(heads, { ...verified.checkpoint, from: "log", signers: signersOf(verified.signers) });
  }
  for (const [number, note] of witness.entries()) {
    const verified = verifyCheckpointByAny(note, keys);
    if (verified.ok) trust(heads, { ...verified.checkpoint, from: "witness", signers: signersOf(verified.signers) });
    else reject(heads, `witness checkpoint ${number + 1} is not signed by ${name}: ${verified.kind}`);
  }
  return heads;
}

function trust(heads: Heads, head: TrustedHead): void {
  const same = heads.bySize.get(head.size) ?? [];
  heads.bySize.set(head.size, [...same, head]);
  heads.newest = Math.max(heads.newest, head.size);
  if (head.from === "log") heads.built = Math.max(heads.built, head.size);
}

function signersOf(keys: readonly NoteKey[]): string[] {
  return keys.map(({ key }) => key.keyId);
}

function reject(heads: Heads, message: string): void {
  heads.findings.push({ kind: "bad_checkpoint", message });
}

/** Checks that checkpoints were signed by keys that still signed then. */
export interface KeyCheck {
  /** Takes the next record. */
  take(index: number, record: AuditRecord): void;
  /** What is wrong, after the last record. */
  end(): Finding[];
}

/**
 * A key that the log says is retired must not be alone under a head over that record: a later thief of it would make
 * heads with it.
 */
export function createKeyCheck(heads: Heads): KeyCheck {
  const retired = new Map<string, number>();
  return {
    take(index, { event }) {
      if (event.case !== "keyChanged") return;
      const { role, change, keyId } = event.value;
      if (role === KeyRole.CHECKPOINT && change === KeyChange.RETIRED) retired.set(keyId, index);
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
