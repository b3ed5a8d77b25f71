/**
 * Does something with each item as it comes, but with at most `perTurn` in one turn of the event loop: the others wait, the
 * oldest first. What else the process does goes on in between, however many come at once.
 *
 * @param work must not throw.
 * @param isGone true for one that waited in vain.
 */
export function paced<T>(perTurn: number, work: (item: T) => void, isGone: (item: T) => boolean): (item: T) => void {
  let waiting: T[] = [];
  let done = 0;
  const turn = (): void => {
    done = 0;
    if (waiting.length === 0) return;
    const now = waiting.filter((item) => !isGone(item));
    waiting = now.splice(perTurn);
    done = now.length;
    setImmediate(turn);
    for (const item of now) work(item);
  };
  return (item) => {
    if (done >= perTurn || waiting.length > 0) waiting.push(item);
    else {
      if (done++ === 0) setImmediate(turn);
      work(item);
    }
  };
}
