import type { Database, Migration } from "../../../../lib/store/database.ts";
import type { GroupCommit } from "../../../../lib/store/group-commit.ts";

/** The table of this engine. */
export interface WakerTables {
  agent_run_wakers: {
    run_id: string;
    /** The invocation at Restate that carries the run. No other one does, whatever is invoked. */
    invocation: string;
    /** The awakeable that the run waits on; empty while it does not wait. */
    waker: string;
    /** The names of what it waits for, as JSON. */
    names: string;
  };
}

/** Changes of this engine's table, in order. */
export const wakerMigrations: readonly Migration[] = [
  {
    name: "agent_restate_0001",
    async up(db) {
      await db.schema
        .createTable("agent_run_wakers")
        .addColumn("run_id", "text", (column) => column.primaryKey())
        .addColumn("invocation", "text", (column) => column.notNull())
        .addColumn("waker", "text", (column) => column.notNull())
        .addColumn("names", "text", (column) => column.notNull())
        .execute();
    },
  },
];

/** A run that waits, and how it is woken. */
export interface Waiting {
  runId: string;
  waker: string;
  names: readonly string[];
}

/** Which invocation carries each run, and what it waits for. */
export interface Wakers {
  /** True for the first invocation of a run, and for the same one again. */
  claim(runId: string, invocation: string): Promise<boolean>;
  set(waiting: Waiting): Promise<void>;
  of(runId: string): Promise<Waiting | undefined>;
  /** The runs that wait, of those that were claimed. */
  all(): Promise<readonly Waiting[]>;
  remove(runId: string): Promise<void>;
}

/** Wakers in the agent service's database. */
export function createWakers(db: Database<WakerTables>, writes: GroupCommit<WakerTables>): Wakers {
  const waitingOf = (row: WakerTables["agent_run_wakers"]): Waiting => ({
    runId: row.run_id,
    waker: row.waker,
    names: JSON.parse(row.names) as string[],
  });
  return {
    claim: (runId, invocation) =>
      writes.write(async (trx) => {
        const row = { run_id: runId, invocation, waker: "", names: "[]" };
        const insert = trx.insertInto("agent_run_wakers").values(row);
        await insert.onConflict((conflict) => conflict.column("run_id").doNothing()).executeTakeFirst();
        const query = trx.selectFrom("agent_run_wakers").select("invocation").where("run_id", "=", runId);
        return (await query.executeTakeFirst())?.invocation === invocation;
      }),
    set: ({ runId, waker, names }) =>
      writes.write(async (trx) => {
        const update = trx.updateTable("agent_run_wakers").set({ waker, names: JSON.stringify(names) });
        await update.where("run_id", "=", runId).executeTakeFirst();
      }),
    async of(runId) {
      const row = await db.selectFrom("agent_run_wakers").selectAll().where("run_id", "=", runId).executeTakeFirst();
      return row && waitingOf(row);
    },
    async all() {
      return (await db.selectFrom("agent_run_wakers").selectAll().execute()).map(waitingOf);
    },
    remove: (runId) =>
      writes.write(async (trx) => {
        await trx.deleteFrom("agent_run_wakers").where("run_id", "=", runId).executeTakeFirst();
      }),
  };
}
