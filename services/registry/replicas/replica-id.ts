import { randomBytes } from "node:crypto";

/** A new replica id, such as "rep-1a2b3c4d5e6f": one for each start of a process. */
export function newReplicaId(): string {
  return `rep-${randomBytes(6).toString("hex")}`;
}
