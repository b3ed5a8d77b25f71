import { setTimeout as sleep } from "node:timers/promises";
import type { CommandContext } from "./command-context.ts";
import { type Page, type Part, readPages } from "./print/pages.ts";

/** How often new items are asked for, in milliseconds. */
const EVERY_MS = 1000;

/** A list that is followed. */
export interface FollowedList<T> {
  /** Reads a page, newest first. */
  read(pageToken: string, room: number): Promise<Page<T>>;
  /** The newest ones that are shown at first. */
  part: Part<T>;
  /** What distinguishes an item from all others. */
  idOf(item: T): string;
  /** Prints items, oldest first. */
  print(items: readonly T[]): Promise<void> | void;
}

/** Prints the newest items, oldest first, and then each new one as it comes, until Ctrl-C. */
export async function followList<T>(list: FollowedList<T>, context: CommandContext): Promise<void> {
  const left = new AbortController();
  const stop = context.onInterrupt(() => left.abort());
  try {
    let { items } = await readPages(list.read, list.part);
    let newest = items[0];
    for (;;) {
      if (items.length > 0) await list.print(items.toReversed());
      await sleep(EVERY_MS, undefined, { signal: left.signal }).catch(() => undefined);
      if (left.signal.aborted) return;
      const known = newest === undefined ? undefined : list.idOf(newest);
      const isWanted = (item: T) => list.idOf(item) !== known && (list.part.isWanted?.(item) ?? true);
      ({ items } = await readPages(list.read, { limit: Infinity, isWanted }));
      newest = items[0] ?? newest;
    }
  } finally {
    stop();
  }
}
