/** Things of which any one can be taken, all at the same small cost. */
export interface Bag<T> {
  readonly size: number;
  add(item: T): void;
  /** Does nothing for one that is not in the bag. */
  remove(item: T): void;
  /** One of them, each as likely; undefined where there is none. */
  any(): T | undefined;
}

/** An empty one. @param pick a whole number from 0 on, less than what it gets. Default: at random. */
export function createBag<T>(pick: (count: number) => number = anyBelow): Bag<T> {
  const items: T[] = [];
  const places = new Map<T, number>();
  return {
    get size() {
      return items.length;
    },
    add(item) {
      places.set(item, items.push(item) - 1);
    },
    remove(item) {
      const place = places.get(item);
      const last = items.at(-1);
      if (place === undefined || last === undefined) return;
      items[place] = last;
      places.set(last, place);
      items.pop();
      places.delete(item);
    },
    any: () => items[pick(items.length)],
  };
}

function anyBelow(count: number): number {
  return Math.floor(Math.random() * count);
}
