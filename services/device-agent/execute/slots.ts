/**
 * Whose call takes a place: an operator's, for whom some are kept, or another's. Each kind is served in the order of its
 * calls, and operators first.
 */
export type PlaceKind = "operator" | "other";

/** A bounded number of places that calls run in. */
export interface Slots {
  /** Takes a place where one is free and no call of the kind waits. False: use `wait`. */
  tryTake(kind?: PlaceKind): boolean;
  /** Resolves with true when a place was taken, with false when the signal was aborted before that. */
  wait(signal: AbortSignal, kind?: PlaceKind): Promise<boolean>;
  /** Gives a place back, of the kind that it was taken as. */
  release(kind?: PlaceKind): void;
}

/**
 * Makes `count` places for all, and `reserve` besides that only operators' calls take: however many calls others have, an
 * operator can look at the device and stop them.
 */
export function createSlots(count: number, reserve = 0): Slots {
  const held = { operator: 0, other: 0 };
  // A Set keeps the order and lets one in the middle leave.
  const waiting = { operator: new Set<() => void>(), other: new Set<() => void>() };
  const isFree = (kind: PlaceKind): boolean =>
    held.operator + held.other < count + reserve && (kind === "operator" || held.other < count);
  const serve = (kind: PlaceKind): boolean => {
    const [next] = waiting[kind];
    if (next === undefined || !isFree(kind)) return false;
    waiting[kind].delete(next);
    held[kind]++;
    next();
    return true;
  };
  return {
    tryTake(kind = "other") {
      if (waiting[kind].size > 0 || !isFree(kind)) return false;
      held[kind]++;
      return true;
    },
    wait(signal, kind = "other") {
      if (signal.aborted) return Promise.resolve(false);
      return new Promise((resolve) => {
        const leave = () => {
          waiting[kind].delete(turn);
          resolve(false);
        };
        const turn = () => {
          signal.removeEventListener("abort", leave);
          resolve(true);
        };
        waiting[kind].add(turn);
        signal.addEventListener("abort", leave, { once: true });
      });
    },
    release(kind = "other") {
      held[kind]--;
      if (!serve("operator")) serve("other");
    },
  };
}
