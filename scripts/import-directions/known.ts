import type { FolderPair } from "./folders.ts";

/** Imports between folders that still go against the floors. A pair goes when its import goes; none may come. */
export const KNOWN: ReadonlySet<FolderPair> = new Set([
  "services/registry/calls → services/registry/queue",
  "services/registry/tables.ts → services/registry/enrollment",
  "services/registry/tables.ts → services/registry/fan-out",
  "services/registry/tables.ts → services/registry/queue",
  "services/registry/tools → services/registry/devices",
]);
