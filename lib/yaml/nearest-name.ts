/** The most that may have to be changed in a name for another one to be meant, as a part of its length. */
const MOST_CHANGED = 0.4;

/** The known name that a misspelt one most likely means; undefined where none is close. */
export function nearestName(name: string, known: Iterable<string>): string | undefined {
  let nearest: string | undefined;
  let least = name.length * MOST_CHANGED;
  for (const one of known) {
    const distance = editDistance(name, one);
    if (distance > least || (distance === least && nearest !== undefined)) continue;
    nearest = one;
    least = distance;
  }
  return nearest;
}

/** How many characters have to be added, removed or replaced (Levenshtein). */
function editDistance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, at) => at);
  for (let index = 0; index < from.length; index++) {
    const next = [index + 1];
    for (let at = 0; at < to.length; at++) {
      const replaced = (row[at] ?? 0) + (to[at] === from[index] ? 0 : 1);
      next.push(Math.min(replaced, (row[at + 1] ?? 0) + 1, (next[at] ?? 0) + 1));
    }
    row = next;
  }
  return row[to.length] ?? 0;
}
