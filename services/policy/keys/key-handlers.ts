import { create } from "@bufbuild/protobuf";
import { durationMs, timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import type { SignedEnvelope } from "../../../gen/ts/reeve/common/v1/signed_pb.ts";
import {
  type Key,
  KeyRole,
  KeySchema,
  type KeyService,
  KeyState,
} from "../../../gen/ts/reeve/key/v1/key_service_pb.ts";
import { principalOf } from "../../../lib/server/context.ts";
import { verifyKeyFromRaw } from "../../../lib/sign/keys.ts";
import { formatVkey, noteKeyOf } from "../../../lib/sign/note.ts";
import type { KeyRing, Keys } from "./key-ring.ts";
import type { KeyRow } from "./key-store.ts";
import type { KeyRotator } from "./rotate.ts";
import type { SignedRole } from "./statement-types.ts";

/** How long keys overlap where the request does not say, in milliseconds. */
const DEFAULT_OVERLAP_MS = 86_400_000;

/** The RPCs of KeyService. */
export function keyHandlers(ring: KeyRing, rotator: KeyRotator) {
  return {
    async listKeys({ role }) {
      await ring.refresh();
      const rows = ring.current().rows.filter((row) => role === KeyRole.UNSPECIFIED || row.role === role);
      return { keys: rows.map(keyMessage) };
    },
    async rotateKey({ role, overlap }, context) {
      const overlapMs = overlap ? durationMs(overlap) : DEFAULT_OVERLAP_MS;
      return { key: keyMessage(await rotator.rotate(role as SignedRole, overlapMs, principalOf(context).id)) };
    },
    getGrantKey: () => ({ publicKey: ring.current().grantKey.raw, checkpointKey: ring.current().vkeys }),
    async getKeyring({ role }) {
      await ring.refresh();
      return { keyrings: [...ring.current().keyrings[role as SignedRole]] };
    },
  } satisfies ServiceImpl<typeof KeyService>;
}

function keyMessage(row: KeyRow): Key {
  const signsNoMore = row.state === KeyState.RETIRING || row.state === KeyState.RETIRED;
  return create(KeySchema, {
    id: row.key_id,
    role: row.role as KeyRole,
    state: row.state as KeyState,
    publicKey: publicText(row),
    createTime: timestampFromMs(row.create_ms),
    signTime: timestampFromMs(row.sign_ms),
    ...(signsNoMore && row.end_ms !== null && { trustEndTime: timestampFromMs(row.end_ms) }),
  });
}

function publicText({ role, name, public: raw }: KeyRow): string {
  if (role === KeyRole.CHECKPOINT) return formatVkey(noteKeyOf(name, verifyKeyFromRaw(raw)));
  return Buffer.from(raw).toString("base64");
}

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
