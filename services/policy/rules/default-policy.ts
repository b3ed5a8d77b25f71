import { fileURLToPath } from "node:url";

/** The policy that is shipped. */
export const DEFAULT_POLICY_FILE = fileURLToPath(new URL("./default-policy.yaml", import.meta.url));
