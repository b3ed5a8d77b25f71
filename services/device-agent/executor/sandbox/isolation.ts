/**
 * How far a program is kept apart from the rest of the machine, the least first. "none": not at all, it can do what the agent's
 * user can. "workspace": it sees the system's programs and the granted folders, may write those that are granted for writing,
 * and has no network unless it was granted. "read_only": the same, and nothing of the machine can be written.
 */
export const ISOLATIONS = ["none", "workspace", "read_only"] as const;

export type Isolation = (typeof ISOLATIONS)[number];

/** True where the first keeps a program apart at least as far as the second. */
export function meets(has: Isolation, floor: Isolation): boolean {
  return ISOLATIONS.indexOf(has) >= ISOLATIONS.indexOf(floor);
}

/** The one of both that keeps a program further apart. */
export function stricter(one: Isolation, other: Isolation): Isolation {
  return meets(one, other) ? one : other;
}
