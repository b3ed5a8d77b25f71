/** How a check went. "broken" makes doctor end with exit code 1. */
export type FindingState = "ok" | "note" | "broken";

/** What one check found. */
export interface Finding {
  /** What was looked at, such as "registry". */
  check: string;
  state: FindingState;
  /** What is so. */
  text: string;
  /** What to do about it. */
  todo?: string;
}

/** A check that found nothing wrong. */
export function ok(check: string, text: string): Finding {
  return { check, state: "ok", text };
}

/** Something worth knowing that stops nothing. */
export function note(check: string, text: string, todo?: string): Finding {
  return { check, state: "note", text, ...(todo !== undefined && { todo }) };
}

/** Something that does not work. */
export function broken(check: string, text: string, todo?: string): Finding {
  return { check, state: "broken", text, ...(todo !== undefined && { todo }) };
}
