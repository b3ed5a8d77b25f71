const UNITS: ReadonlyMap<string, number> = new Map([
  ["ms", 1],
  ["s", 1000],
  ["m", 60_000],
  ["h", 3_600_000],
  ["d", 86_400_000],
]);

/** Milliseconds of a text such as "250ms", "60s", "10m", "2h" or "1d"; undefined for anything else. */
export function parseDuration(text: string): number | undefined {
  const [, count, unit = ""] = /^(\d{1,9})(ms|s|m|h|d)$/.exec(text) ?? [];
  return count === undefined ? undefined : Number(count) * (UNITS.get(unit) ?? 0);
}
