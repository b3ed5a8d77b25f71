import { fromBinary } from "@bufbuild/protobuf";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import { CallSchema } from "../../../gen/ts/reeve/call/v1/call_pb.ts";
import { canonicalJson } from "../../../lib/sign/canonical.ts";
import type { Database } from "../../../lib/store/database.ts";
import type { GroupCommit } from "../../../lib/store/group-commit.ts";
import { rewriteDatabase } from "../../../lib/store/rewrite.ts";
import { withoutSecrets } from "../../../lib/tool/arguments.ts";
import { NOT_SHOWN } from "../../../lib/tool/redact.ts";
import { toolByName } from "../../../lib/toolschema/catalog-file.ts";
import type { RegistryTables } from "../tables.ts";
import { type Bodies, skeletonOf } from "./bodies.ts";
import { callIn, STORED_COLUMNS, type StoredRow } from "./stored-row.ts";

/** How many rows are sealed in one transaction. */
const BATCH = 100;

const NOTHING = new Uint8Array();

/** What sealing old calls needs. */
export interface SealOldOptions {
  db: Database<RegistryTables>;
  writes: GroupCommit<RegistryTables>;
  bodies: Bodies;
  now(): number;
}

/**
 * Seals the bodies of calls that a version wrote which did not, and deletes the secrets of those that have ended. A SQLite
 * file is rewritten afterwards, so that no page of it holds them any more. Resolves with the number of calls.
 */
export async function sealOldCalls({ db, writes, bodies, now }: SealOldOptions): Promise<number> {
  let sealed = 0;
  for (let rows = await unsealed(db); rows.length > 0; rows = await unsealed(db)) {
    const changes = rows.map((row) => ({ id: row.id, ended: row.ended === 1, ...sealedColumns(row, bodies, now()) }));
    await writes.write(async (trx) => {
      for (const { id, ended, ...columns } of changes) {
        // It may have ended since it was read: then the next look seals its end.
        const update = trx.updateTable("calls").set(columns).where("id", "=", id).where("sealed", "=", 0);
        await update.where("ended", "=", ended ? 1 : 0).execute();
      }
    });
    sealed += rows.length;
  }
  if (sealed > 0) await rewriteDatabase(db);
  return sealed;
}

type OldRow = StoredRow & { ended: number };

function unsealed(db: Database<RegistryTables>): Promise<OldRow[]> {
  return db
    .selectFrom("calls")
    .select([...STORED_COLUMNS, "ended"])
    .where("sealed", "=", 0)
    .orderBy("row")
    .limit(BATCH)
    .execute();
}

function sealedColumns(row: OldRow, bodies: Bodies, nowMs: number) {
  const call = callIn(row, bodies);
  const { purpose } = call;
  const shown = shownOf(call.tool, row.args);
  const sealedShown = shown && bodies.sealShown(row.id, { args: shown, purpose });
  const endMs = call.endTime === undefined ? nowMs : timestampMs(call.endTime);
  return {
    sealed: 1,
    call: skeletonOf(fromBinary(CallSchema, row.call)),
    args: row.ended === 1 && sealedShown ? NOTHING : bodies.sealAsked(row.id, { args: row.args, purpose }),
    shown: sealedShown ?? null,
    result: row.ended === 1 ? bodies.sealResult(row.id, call) : null,
    output: null,
    kept_from_ms: row.ended === 1 ? endMs : null,
  };
}

/** Without secrets. Of a tool that is not built in it is not known any more which fields are. */
function shownOf(tool: string, args: Uint8Array): Uint8Array | undefined {
  const schema = toolByName(tool)?.inputSchema;
  return schema === undefined ? Buffer.from(canonicalJson({ note: NOT_SHOWN })) : withoutSecrets(args, schema);
}
