import { Client } from "pg";
import { killPoint, writeOf } from "./kill-at.ts";

/** Statements that change nothing by themselves, and the renewals of leases, which come by the clock. */
const HARMLESS = /^\s*(?:select|set|begin|start|rollback|savepoint|release)\b|"(?:\w+_leases|replicas)"/i;

/** By connection what its transaction has written, in order. */
const transactions = new WeakMap<object, Set<string>>();

type Query = (text: unknown, ...rest: unknown[]) => Promise<unknown>;

/**
 * Puts points around each commit of PostgreSQL: before it is sent, when it may or may not have reached the server, and when
 * it was acknowledged.
 */
export function watchPostgres(): void {
  const prototype = Client.prototype as unknown as { query: Query };
  const { query } = prototype;
  prototype.query = function (this: object, text, ...rest) {
    const sql = textOf(text);
    if (/^\s*(?:begin|start)\b/i.test(sql)) transactions.set(this, new Set());
    const open = transactions.get(this);
    const write = writeOf(sql);
    const writes = open ?? new Set();
    if (write !== undefined && !HARMLESS.test(sql)) writes.add(write);
    const isEnd = /^\s*(?:commit|rollback)\s*$/i.test(sql);
    if (isEnd) transactions.delete(this);
    if (writes.size === 0 || (open !== undefined && !isEnd)) return query.call(this, text, ...rest);
    const places = [...writes].map((one) => `postgres: ${one}`);
    killPoint(places.map((place) => `${place}, before the commit`));
    const acknowledged = query.call(this, text, ...rest);
    killPoint(places.map((place) => `${place}, as the commit is sent`));
    return acknowledged.then((result) => {
      killPoint(places.map((place) => `${place}, after the commit`));
      return result;
    });
  };
}

function textOf(query: unknown): string {
  if (typeof query === "string") return query;
  return query !== null && typeof query === "object" && "text" in query ? String(query.text) : "";
}
