import { setTimeout as sleep } from "node:timers/promises";
import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type Checkpoint, CheckpointSchema } from "../../../gen/ts/reeve/audit/v1/checkpoint_pb.ts";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { reasonOf } from "../../../lib/fault/fault.ts";
import { parseCheckpoint, signCheckpoint } from "../../../lib/sign/checkpoint.ts";
import type { SigningKey } from "../../../lib/sign/keys.ts";
import { prepared, type QueryRunner } from "../../../lib/store/prepared.ts";
import type { RecordedWrites } from "../storage/recorded-writes.ts";
import type { Sequencer } from "../storage/storage.ts";
import type { PolicyDatabase, PolicyTables } from "../storage/tables.ts";
import type { TreeBuilder, TreeStore } from "./tree.ts";

/** The keys that sign checkpoints, as a transaction sees them. */
export interface CheckpointKeys {
  seenBy(trx: QueryRunner): Promise<{ logName: string; checkpointSigners: readonly [SigningKey, ...SigningKey[]] }>;
}

/** Signs the log's head, or waits for the replica that does. */
export interface Checkpointer {
  /** A hint that a record was appended: the head is signed soon. */
  appended(): void;
  /**
   * A checkpoint over so many records at least. The replica that signs does so now where it has to; another waits a
   * moment for it. The newest one where none comes in that time; undefined for a log without any.
   *
   * @param size default: as many records as there are.
   */
  covering(size?: number): Promise<Checkpoint | undefined>;
  newest(): Promise<Checkpoint | undefined>;
  /** Signs what is not signed yet, where this replica may, and stops. */
  close(): Promise<void>;
}

export interface CheckpointerOptions {
  db: PolicyDatabase;
  writes: RecordedWrites;
  tree: Pick<TreeStore, "size">;
  builder: TreeBuilder;
  keys: CheckpointKeys;
  sequencer: Sequencer;
  /** Whether other replicas append to the log as well. */
  shared: boolean;
  /** From an append to the checkpoint that covers it, in milliseconds. */
  delayMs: number;
  now: () => number;
  /** Receives why a checkpoint could not be signed; it is tried again with the next append. */
  onError: (error: unknown) => void;
}

/** Records that one checkpoint adds at most, so that a long backlog does not hold the writer. */
const MOST_AT_ONCE = 4096;

/** How long to wait for the checkpoint of another replica, in milliseconds. */
const PATIENCE_MS = 2000;

/** How often to look for the checkpoint of another replica, in milliseconds. */
const LOOK_MS = 25;

/**
 * Signs checkpoints (https://c2sp.org/tlog-checkpoint) a moment after each append, so that one signature covers many
 * records. The tree's new nodes and the signed head are one transaction: the tree is exactly as large as the newest
 * checkpoint says. Of several replicas only the one with the lease signs; the transaction itself checks that it still has
 * it, so that one which stood still meanwhile signs nothing.
 */
export function createCheckpointer(options: CheckpointerOptions): Checkpointer {
  const { db, writes, tree, builder, keys, sequencer, shared, delayMs, now, onError } = options;
  const select = prepared(() => db.selectFrom("checkpoints").selectAll().orderBy("size", "desc").limit(1));
  const insert = prepared((p: PolicyTables["checkpoints"]) =>
    db.insertInto("checkpoints").values({ size: p.size, note: p.note, time_ms: p.time_ms, token: p.token }),
  );
  let timer: NodeJS.Timeout | undefined;
  let closed = false;

  const signMore = (token: number): Promise<number> =>
    writes.write(async (trx) => {
      await sequencer.check(trx, token);
      const built = (await select.first(trx, {}))?.size ?? 0;
      const { size, root } = await builder.build(trx, built, MOST_AT_ONCE);
      if (size === built) return 0;
      const { logName, checkpointSigners } = await keys.seenBy(trx);
      const note = signCheckpoint({ origin: logName, size, root }, ...checkpointSigners);
      await insert.run(trx, { size, note, time_ms: now(), token });
      return size - built;
    });
  /** False where another replica signs from now on. */
  const signNow = async (): Promise<boolean> => {
    const { token } = sequencer;
    if (token === undefined) return false;
    try {
      let grown = 0;
      do grown = await signMore(token);
      while (grown === MOST_AT_ONCE);
      return true;
    } catch (e: unknown) {
      if (reasonOf(e) === ErrorReason.LEASE_LOST) return false;
      throw e;
    }
  };
  const newest = async (): Promise<Checkpoint | undefined> => {
    const row = await select.first(db, {});
    return row && checkpointOf(row);
  };
  const sign = (): void => {
    timer = undefined;
    signNow().catch(onError);
  };
  const appended = (): void => {
    if (!closed && sequencer.held) timer ??= setTimeout(sign, delayMs).unref();
  };
  /** What other replicas appended, and what was left when the lease changed hands. */
  const lookForMore = async (): Promise<void> => {
    if (!sequencer.held || timer !== undefined) return;
    const signed = (await select.first(db, {}))?.size ?? 0;
    if ((await tree.size(db)) > signed && !closed && timer === undefined) sign();
  };
  let looked: Promise<void> = Promise.resolve();
  const look = (): void => {
    looked = lookForMore().catch(onError);
  };
  const looking = shared ? setInterval(look, delayMs).unref() : undefined;

  return {
    appended,
    newest,
    async covering(size) {
      const wanted = size ?? (await tree.size(db));
      const deadline = performance.now() + PATIENCE_MS;
      for (;;) {
        const found = await newest();
        if (Number(found?.size ?? 0) >= wanted || performance.now() >= deadline) return found;
        if (!(await signNow())) await sleep(LOOK_MS);
      }
    },
    async close() {
      closed = true;
      clearTimeout(timer);
      clearInterval(looking);
      await looked;
      await signNow().catch(onError);
    },
  };
}

/** A stored checkpoint as a message. Origin and root are those of the signed text. */
function checkpointOf({ size, note, time_ms }: PolicyTables["checkpoints"]): Checkpoint {
  const parsed = parseCheckpoint(note.slice(0, note.indexOf("\n\n") + 1));
  return create(CheckpointSchema, {
    origin: parsed?.origin ?? "",
    size: BigInt(size),
    root: parsed?.root ?? new Uint8Array(),
    note,
    time: timestampFromMs(time_ms),
  });
}
