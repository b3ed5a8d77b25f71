import { createHash } from "node:crypto";

/**
 * The id of a call in the registry, made from the run's id and the id that the model gave its use of the tool. The same
 * pair gives the same id, so that sending it again runs nothing twice; another pair gives another one (160 bits of
 * SHA-256). At most 64 characters of [A-Za-z0-9_-]; starts with the run's id as far as it fits, for people who read logs.
 */
export function callIdOf(runId: string, toolUseId: string): string {
  const digest = createHash("sha256")
    .update(JSON.stringify([runId, toolUseId]))
    .digest("hex")
    .slice(0, 40);
  const prefix = runId.replace(/[^A-Za-z0-9_-]/gu, "").slice(0, 23);
  return prefix === "" ? digest : `${prefix}-${digest}`;
}
