/** How many lines around a change are shown. */
const CONTEXT = 3;

/**
 * The lines in which two texts differ, with "-" before those of the first and "+" before those of the second, and a few lines around
 * them: one block, from the first line that differs to the last. Pure, and linear in both.
 */
export function lineDiff(before: string, after: string): string {
  const [old, now] = [before.split("\n"), after.split("\n")];
  const most = Math.min(old.length, now.length);
  let start = 0;
  while (start < most && old[start] === now[start]) start++;
  let end = 0;
  while (end < most - start && old[old.length - 1 - end] === now[now.length - 1 - end]) end++;
  const from = Math.max(0, start - CONTEXT);
  const last = old.slice(old.length - end, old.length - end + CONTEXT);
  return [
    `@@ from line ${from + 1} @@`,
    ...old.slice(from, start).map((line) => ` ${line}`),
    ...old.slice(start, old.length - end).map((line) => `-${line}`),
    ...now.slice(start, now.length - end).map((line) => `+${line}`),
    ...last.map((line) => ` ${line}`),
  ].join("\n");
}
