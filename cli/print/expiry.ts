/** Before an end this long, in milliseconds, the owner is warned. */
export const SOON_MS: number = 14 * 86_400_000;

/** When a manifest ends, for a person: "until 2027-03-01T00:00:00Z, in 12 days". */
export function expiryText(endMs: number, nowMs: number): string {
  const time = new Date(endMs).toISOString().replace(".000", "");
  if (nowMs >= endMs) return `expired on ${time}`;
  const days = Math.floor((endMs - nowMs) / 86_400_000);
  return `until ${time}, in ${days} day${days === 1 ? "" : "s"}`;
}
