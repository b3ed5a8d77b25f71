const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Milliseconds of a text such as "250ms", "60s", "10m", "2h" or "1d"; undefined for anything else. */
export function parseDuration(text: string): number | undefined {
  const parts = /^(\d{1,9})(ms|s|m|h|d)$/.exec(text);
  if (!parts) return undefined;
  return Number(parts[1]) * (UNITS[parts[2] ?? ""] ?? 0);
}
