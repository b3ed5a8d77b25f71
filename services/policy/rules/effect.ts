/** What a rule does with the calls it matches, from the strictest to the mildest. */
export const EFFECTS = ["block", "deny", "hold", "allow"] as const;

/** block: never, no human can lift it. deny: no. hold: a human decides. allow: yes. */
export type Effect = (typeof EFFECTS)[number];

/** True for the name of an effect. */
export function isEffect(name: string): name is Effect {
  return (EFFECTS as readonly string[]).includes(name);
}

/** True when the first effect is stricter than the second. */
export function isStricter(first: Effect, second: Effect): boolean {
  return EFFECTS.indexOf(first) < EFFECTS.indexOf(second);
}
