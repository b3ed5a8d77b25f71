/** So many ends pass between two notes of how far all have ended. */
const ENDS_BETWEEN = 256;

/**
 * Follows up to which number all executions have ended, so that a start looks for those without an end among the newest
 * only. The note of it may lag behind: then the start looks at more.
 */
export interface Settled {
  /** The next number, for a call that is about to be taken on. */
  next(): number;
  /** The call with that number was taken on. */
  taken(callId: string, seq: number): void;
  /** Nothing was written under that number. */
  notTaken(seq: number): void;
  /** The call has its end. */
  ended(callId: string): void;
  /** The number to note with the next end that is written; undefined for most. */
  due(): number | undefined;
}

/**
 * @param last the highest number that was given.
 * @param unended the executions without an end, in the order of their numbers.
 */
export function createSettled(last: number, unended: readonly { call_id: string; seq: number }[]): Settled {
  // In the order of their numbers: a Set keeps its members as they came.
  const open = new Set(unended.map(({ seq }) => seq));
  const numbers = new Map(unended.map(({ call_id, seq }) => [call_id, seq]));
  let ends = 0;
  return {
    next() {
      open.add(++last);
      return last;
    },
    taken: (callId, seq) => void numbers.set(callId, seq),
    notTaken: (seq) => void open.delete(seq),
    ended(callId) {
      const seq = numbers.get(callId);
      if (seq === undefined) return;
      numbers.delete(callId);
      open.delete(seq);
    },
    due() {
      ends++;
      if (ends % ENDS_BETWEEN !== 0) return undefined;
      const [first = last + 1] = open;
      return first - 1;
    },
  };
}
