import { readFile, stat } from "node:fs/promises";
import type { ToolLookup } from "../facts/decision-request.ts";
import { loadPolicy, policyVersion } from "./load-policy.ts";
import type { Policy } from "./policy.ts";
import { problemText } from "./problem.ts";

/** The active policy, from a file that may change. */
export interface PolicySource {
  current(): ActivePolicy;
  /** Looks at the file now, as it is done regularly by itself. */
  check(): Promise<void>;
  /** Stops looking. */
  close(): Promise<void>;
}

export interface ActivePolicy {
  policy: Policy;
  /** In milliseconds since 1970. */
  loadMs: number;
  /** Why a newer file was refused; empty where none was. */
  refused: string;
}

export interface PolicySourceOptions {
  /** The policy file. */
  path: string;
  lookup: ToolLookup;
  /** How often the file is looked at, in milliseconds; 0 for never. */
  pollMs: number;
  now: () => number;
  /**
   * Writes down that a policy was loaded (no problem) or refused, before it becomes active. Where this rejects nothing
   * changes, and it is tried again.
   */
  record: (version: string, problem: string) => Promise<void>;
  /** Receives what went wrong in a regular look. */
  onError: (error: unknown) => void;
}

/** The longest problem text that is kept: the first problems of a file say enough. */
const MAX_PROBLEMS = 20;

/**
 * Loads the file and goes on looking at it. A file that does not load, or cannot be read, leaves the policy before it
 * active. Rejects with all problems where the first one does not load: there is nothing to go on with.
 */
export async function openPolicySource(options: PolicySourceOptions): Promise<PolicySource> {
  const { path, lookup, pollMs, now, record, onError } = options;
  let seen = "";
  let stamp = "";
  let active: ActivePolicy | undefined;

  const look = async (): Promise<void> => {
    const found = await stampOf(path);
    if (found === stamp) return;
    const text = await readFile(path, "utf8").catch((e: unknown) => `unreadable: ${String(e)}`);
    if (text !== seen) await take(text);
    stamp = found;
    seen = text;
  };
  const take = async (text: string): Promise<void> => {
    const result = text.startsWith("unreadable: ")
      ? { ok: false as const, version: policyVersion(text), problems: [{ line: 1, message: text }] }
      : loadPolicy(text, lookup);
    if (result.ok) {
      await record(result.policy.version, "");
      active = { policy: result.policy, loadMs: now(), refused: "" };
      return;
    }
    const refused = result.problems.slice(0, MAX_PROBLEMS).map(problemText).join("\n");
    await record(result.version, refused);
    if (active) active = { ...active, refused };
    else throw new Error(`the policy file ${path} is refused:\n${refused}`);
  };

  let looking: Promise<void> = look();
  await looking;
  const check = (): Promise<void> => (looking = looking.catch(() => {}).then(look));
  const timer = pollMs > 0 ? setInterval(() => void check().catch(onError), pollMs).unref() : undefined;
  return {
    current() {
      if (!active) throw new Error("no policy is active");
      return active;
    },
    check,
    async close() {
      clearInterval(timer);
      await looking.catch(() => {});
    },
  };
}

/** Changes whenever the file may have changed. */
async function stampOf(path: string): Promise<string> {
  const found = await stat(path, { bigint: true }).catch(() => undefined);
  return found ? `${found.mtimeNs} ${found.ctimeNs} ${found.ino} ${found.size}` : "missing";
}
