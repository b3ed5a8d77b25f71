import type { Step } from "../state.ts";

/** One destructive pattern. */
export interface BlockRule {
  /** Its name, such as "blocklist/delete-system". */
  name: string;
  /** For the caller. */
  message: string;
  /** Shell texts that it refuses. Run by the tests. */
  match: readonly string[];
  /** Shell texts that it lets pass. Run by the tests. */
  not_match: readonly string[];
  /** True for a command to refuse. */
  test(step: Step): boolean;
}
