import { describe, expect, test } from "vitest";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { eventually } from "../../testkit/eventually.ts";
import { reasonOf } from "../fault/fault.ts";
import type { Database } from "./database.ts";
import { keepLease, type Lease, type LeaseOptions, leaseMigration } from "./lease.ts";
import type { LeaseTable } from "./lease-row.ts";
import { STORE_KINDS, useStore } from "./testdata/stores.ts";

/** Short enough to wait for; no test depends on how long it really is. */
const SHORT_MS = 200;

/** A holder that renews nothing by itself: nothing happens between its first question and the test's end. */
const NEVER_MS = 3_600_000;

interface Tables {
  leases: LeaseTable;
}

describe.each(STORE_KINDS)("a lease on %s", (kind) => {
  const store = useStore(kind);
  const open = () => store.open<Tables>([leaseMigration("leases")]);

  async function withLeases(
    work: (keep: (options: Omit<LeaseOptions<Tables>, "table">) => Lease, db: Database<Tables>) => Promise<void>,
  ) {
    const db = await open();
    const leases: Lease[] = [];
    const keep = (options: Omit<LeaseOptions<Tables>, "table">) => {
      const lease = keepLease({ ...options, table: "leases" });
      leases.push(lease);
      return lease;
    };
    try {
      await work(keep, db);
    } finally {
      await Promise.all(leases.map((lease) => lease.close()));
    }
  }

  const check = (db: Database<Tables>, lease: Lease, token?: number) =>
    db.transaction().execute((trx) => lease.check<Tables>(trx, token));

  test("is held by one at a time, and given back to the next with a higher token", () =>
    withLeases(async (keep, db) => {
      const first = keep({ db, name: "audit", holder: "a" });
      await eventually(() => expect(first.held).toBe(true));
      const second = keep({ db, name: "audit", holder: "b", renewMs: 10 });
      const elsewhere = keep({ db, name: "relay", holder: "b" });
      await eventually(() => expect(elsewhere.held).toBe(true));
      expect([first.token, second.token, elsewhere.token]).toEqual([1, undefined, 1]);
      await check(db, first);
      expect(await check(db, second).catch(reasonOf)).toBe(ErrorReason.LEASE_LOST);
      await first.close();
      expect(first.held).toBe(false);
      await eventually(() => expect(second.held).toBe(true));
      expect(second.token).toBe(2);
      expect(await check(db, first).catch(reasonOf)).toBe(ErrorReason.LEASE_LOST);
    }));

  test("stays with a holder that renews it", () =>
    withLeases(async (keep, db) => {
      const holder = keep({ db, name: "audit", holder: "a", ttlMs: 60_000, renewMs: 20 });
      await eventually(() => expect(holder.held).toBe(true));
      const expiry = async () =>
        (await db.selectFrom("leases").select("expires_ms").executeTakeFirstOrThrow()).expires_ms;
      const first = await expiry();
      await eventually(async () => expect(await expiry()).toBeGreaterThan(first + 100));
      expect(holder.token).toBe(1);
    }));

  test("goes to another one when its holder stands still, and fences that holder off", () =>
    withLeases(async (keep, db) => {
      const begin = Date.now();
      // Its clock stands still: it never learns that its time is up.
      const paused = keep({ db, name: "audit", holder: "a", ttlMs: SHORT_MS, renewMs: NEVER_MS, now: () => begin });
      await eventually(() => expect(paused.held).toBe(true));
      const next = keep({ db, name: "audit", holder: "b", renewMs: 20 });
      await eventually(() => expect(next.held).toBe(true));
      expect(paused.held).toBe(true);
      expect(await check(db, paused).catch(reasonOf)).toBe(ErrorReason.LEASE_LOST);
      await check(db, next);
    }));

  test("cannot be taken before the end of a transaction that has checked it", () =>
    withLeases(async (keep, db) => {
      const begin = Date.now();
      const slow = keep({ db, name: "audit", holder: "a", ttlMs: SHORT_MS, renewMs: NEVER_MS, now: () => begin });
      await eventually(() => expect(slow.held).toBe(true));
      const { next, heldDuring } = await db.transaction().execute(async (trx) => {
        await slow.check<Tables>(trx);
        const waiting = keep({ db, name: "audit", holder: "b", renewMs: 10 });
        await new Promise((resolve) => setTimeout(resolve, SHORT_MS + 100));
        return { next: waiting, heldDuring: waiting.held };
      });
      expect(heldDuring).toBe(false);
      await eventually(() => expect(next.held).toBe(true));
    }));

  test("is over for its holder before anybody else can take it, where it cannot be renewed", () =>
    withLeases(async (keep, db) => {
      let now = Date.now();
      const changes: boolean[] = [];
      const lease = keep({ db, name: "audit", holder: "a", ttlMs: 1_000, renewMs: NEVER_MS, now: () => now });
      lease.onChange((held) => changes.push(held));
      await eventually(() => expect(lease.held).toBe(true));
      now += 899;
      expect(lease.held).toBe(true);
      now += 1;
      expect(lease.held).toBe(false);
      expect(lease.token).toBeUndefined();
      expect(await check(db, lease).catch(reasonOf)).toBe(ErrorReason.LEASE_LOST);
      await eventually(() => expect(changes).toEqual([true, false]));
    }));

  test("is another holding once it was lost and taken again", () =>
    withLeases(async (keep, db) => {
      let now = Date.now();
      const changes: boolean[] = [];
      const lease = keep({ db, name: "audit", holder: "a", renewMs: 20, now: () => now });
      lease.onChange((held) => changes.push(held));
      await eventually(() => expect(lease.held).toBe(true));
      now += 5_000;
      await eventually(() => expect(lease.token).toBe(2));
      expect(await check(db, lease, 1).catch(reasonOf)).toBe(ErrorReason.LEASE_LOST);
      await check(db, lease, 2);
      expect(changes).toEqual([true, false, true]);
    }));

  test("reports the first failure of a row, and asks on", () =>
    withLeases(async (keep, db) => {
      const errors: unknown[] = [];
      await db.schema.alterTable("leases").renameTo("hidden").execute();
      const lease = keep({ db, name: "audit", holder: "a", renewMs: 5, onError: (error) => errors.push(error) });
      await eventually(() => expect(errors).toHaveLength(1));
      await db.schema.alterTable("hidden").renameTo("leases").execute();
      await eventually(() => expect(lease.held).toBe(true));
      expect(errors).toHaveLength(1);
    }));
});
