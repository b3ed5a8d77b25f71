import type { Kysely } from "kysely";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { fault } from "../fault/fault.ts";
import type { Database } from "./database.ts";
import { createLeaseRow } from "./lease-row.ts";

export { type LeaseTables, leaseMigration } from "./lease-row.ts";

/** A right that one holder at a time has, for as long as it keeps asking: to publish, to write a log, to lead. */
export interface Lease {
  /**
   * True from the moment it was taken until it is given back or might have run out. It turns false before another holder
   * can take it, also where the database cannot be reached, unless this process stands still: so every writer to the
   * database calls `check` as well.
   */
  readonly held: boolean;
  /** The number of this holding, while it is held. It rises with every new one, of any holder. */
  readonly token: number | undefined;
  /**
   * Throws LEASE_LOST unless this holder has the lease now, under the token, and keeps it from everybody else until the
   * transaction ends: what the transaction writes happens while it holds it or not at all.
   *
   * @param token the holding that the transaction's work began in. Default: the present one. Hand it over where what is
   *   in memory belongs to one holding, since the lease may have been lost and taken again meanwhile.
   */
  check<T>(trx: Kysely<T>, token?: number): Promise<void>;
  /** Calls the listener whenever `held` changes. Returns what takes it off. */
  onChange(listener: (held: boolean) => void): () => void;
  /** Stops to ask, and gives the lease back so that another one gets it at once. */
  close(): Promise<void>;
}

/** How to keep a lease. */
export interface LeaseOptions<T> {
  db: Database<T>;
  /** The service's table of leases. */
  table: keyof T & string;
  /** What it is the right to. */
  name: string;
  /** The holder: no two `keepLease` of one name may use the same. */
  holder: string;
  /** How long it lasts when it is not renewed, in milliseconds. Default 5000. */
  ttlMs?: number;
  /** How often to renew it, and to ask for it while another one has it, in milliseconds. Default 1500. */
  renewMs?: number;
  /**
   * Milliseconds that rise. Default: the wall clock for what SQLite stores, which all processes of a machine share, and
   * the monotonic clock for `held`. On PostgreSQL the database's own clock says when a lease has run out.
   */
  now?: () => number;
  /** Receives the first of a row of failures to reach the database. Default: ignored. */
  onError?: (error: unknown) => void;
}

/** This part of the time is not used at the end, since two machines' clocks never run at the very same rate. */
const SAFETY = 0.1;

/**
 * Asks for a lease until it is closed, and renews it while it is held. Returns at once; `onChange` reports when it is
 * held. Claims it from a holder that is gone within `ttlMs + renewMs`.
 */
export function keepLease<T>(options: LeaseOptions<T>): Lease {
  const { name, holder, ttlMs = 5_000, renewMs = 1_500, onError = () => {} } = options;
  const clock = options.now ?? (() => performance.now());
  const row = createLeaseRow({ ...options, ttlMs, now: options.now ?? Date.now });
  const listeners = new Set<(held: boolean) => void>();
  let holding: { token: number; untilMs: number } | undefined;
  let reported = false;
  let failing = false;
  let closed = false;
  let timer: NodeJS.Timeout | undefined;
  let deadline: NodeJS.Timeout | undefined;

  const current = () => (holding !== undefined && clock() < holding.untilMs ? holding.token : undefined);

  function report(held: boolean): void {
    if (held === reported) return;
    reported = held;
    for (const listener of listeners) listener(held);
  }

  function keep(next: typeof holding): void {
    // A holding that was lost and taken again is two changes.
    if (next?.token !== holding?.token) report(false);
    holding = next;
    watch();
  }

  function watch(): void {
    clearTimeout(deadline);
    const leftMs = (holding?.untilMs ?? 0) - clock();
    if (holding !== undefined && leftMs > 0) deadline = setTimeout(watch, leftMs);
    report(current() !== undefined);
  }

  /** The time counts from before the question: the database gives its own ttlMs from some later moment. */
  async function ask(): Promise<void> {
    const untilMs = clock() + ttlMs * (1 - SAFETY);
    const token = current();
    const renewed = token !== undefined && (await row.renew(token)) ? token : await row.take();
    keep(renewed === undefined ? undefined : { token: renewed, untilMs });
  }

  async function askAgainAndAgain(): Promise<void> {
    try {
      await ask();
      failing = false;
    } catch (error: unknown) {
      // What was held stays held until its time is up.
      if (!failing) onError(error);
      failing = true;
    }
    if (!closed) timer = setTimeout(start, renewMs);
  }

  let asking: Promise<void> = Promise.resolve();
  const start = () => {
    asking = askAgainAndAgain();
  };
  start();

  return {
    get held() {
      return current() !== undefined;
    },
    get token() {
      return current();
    },
    async check(trx, token = current()) {
      if (token !== undefined && token === current() && (await row.isHeld(trx, token))) return;
      throw fault(
        ErrorReason.LEASE_LOST,
        { lease: name },
        { message: `${holder} does not hold the lease ${name}; try again, another replica may hold it` },
      );
    },
    onChange(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    async close() {
      closed = true;
      clearTimeout(timer);
      await asking;
      clearTimeout(timer);
      const token = holding?.token;
      keep(undefined);
      // Where this fails the lease runs out by itself.
      if (token !== undefined) await row.giveBack(token).catch(onError);
    },
  };
}
