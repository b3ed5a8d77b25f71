import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type Checkpoint, CheckpointSchema } from "../../../gen/ts/reeve/audit/v1/checkpoint_pb.ts";
import { parseCheckpoint, signCheckpoint } from "../../../lib/sign/checkpoint.ts";
import type { SigningKey } from "../../../lib/sign/keys.ts";
import { prepared } from "../../../lib/store/prepared.ts";
import type { RecordedWrites } from "../recorded-writes.ts";
import type { PolicyDatabase, PolicyTables } from "../tables.ts";
import type { TreeBuilder } from "./tree-builder.ts";

/** Signs the log's head. */
export interface Checkpointer {
  /** Says that something was appended: the head is signed soon. */
  appended(): void;
  /** Builds the tree over all records and signs its head. Returns the newest checkpoint; undefined for an empty log. */
  signNow(): Promise<Checkpoint | undefined>;
  /** The newest checkpoint there is. */
  newest(): Promise<Checkpoint | undefined>;
  /** Signs what is not signed yet and stops. */
  close(): Promise<void>;
}

/** What a checkpointer needs. */
export interface CheckpointerOptions {
  db: PolicyDatabase;
  writes: RecordedWrites;
  builder: TreeBuilder;
  key: SigningKey;
  /** The log's name. */
  origin: string;
  /** From an append to the checkpoint that covers it, in milliseconds. */
  delayMs: number;
  now: () => number;
  /** Hears why a checkpoint could not be signed; it is tried again with the next append. */
  onError: (error: unknown) => void;
}

/** Records that one checkpoint adds at most, so that a long backlog does not hold the writer. */
const MOST_AT_ONCE = 4096;

/**
 * Signs checkpoints (https://c2sp.org/tlog-checkpoint) a moment after each append, so that one signature covers many
 * records. The tree's new nodes and the signed head are one transaction: the tree is exactly as large as the newest
 * checkpoint says.
 */
export function createCheckpointer(options: CheckpointerOptions): Checkpointer {
  const { db, writes, builder, key, origin, delayMs, now, onError } = options;
  const select = prepared(() => db.selectFrom("checkpoints").selectAll().orderBy("size", "desc").limit(1));
  const insert = prepared((p: PolicyTables["checkpoints"]) =>
    db.insertInto("checkpoints").values({ size: p.size, note: p.note, time_ms: p.time_ms }),
  );
  let timer: NodeJS.Timeout | undefined;
  let closed = false;

  const signMore = (): Promise<{ row: PolicyTables["checkpoints"] | undefined; grown: number }> =>
    writes.write(async (trx) => {
      const before = await select.first(trx, {});
      const built = before?.size ?? 0;
      const { size, root } = await builder.build(trx, built, MOST_AT_ONCE);
      if (size === built) return { row: before, grown: 0 };
      const row = { size, note: signCheckpoint({ origin, size, root }, key), time_ms: now() };
      await insert.run(trx, row);
      return { row, grown: size - built };
    });
  const signNow = async (): Promise<Checkpoint | undefined> => {
    for (;;) {
      const { row, grown } = await signMore();
      if (grown < MOST_AT_ONCE) return row && checkpointOf(row);
    }
  };
  const sign = (): void => {
    timer = undefined;
    signNow().catch(onError);
  };
  return {
    appended() {
      if (!closed) timer ??= setTimeout(sign, delayMs).unref();
    },
    signNow,
    async newest() {
      const row = await select.first(db, {});
      return row && checkpointOf(row);
    },
    async close() {
      closed = true;
      clearTimeout(timer);
      await signNow().catch(onError);
    },
  };
}

/** A stored checkpoint as a message. Origin and root are those of the signed text. */
export function checkpointOf({ size, note, time_ms }: PolicyTables["checkpoints"]): Checkpoint {
  const parsed = parseCheckpoint(note.slice(0, note.indexOf("\n\n") + 1));
  return create(CheckpointSchema, {
    origin: parsed?.origin ?? "",
    size: BigInt(size),
    root: parsed?.root ?? new Uint8Array(),
    note,
    time: timestampFromMs(time_ms),
  });
}
