/** How much chaos there is. */
export interface ChaosSettings {
  /** How many governed calls are made. */
  calls: number;
  /** Over how long they are begun, and things break, in milliseconds. */
  ms: number;
  /** Decides which calls are made, and what breaks in which order. The machine's own timing is not in it. */
  seed: number;
  /** The full run: how long devices take to come back is asserted, not only reported. */
  full: boolean;
  /** A folder to put the log of every process into, to look for the cause of a finding. */
  logs?: string;
}

/** Calls of a full run. */
const FULL_CALLS = 2000;

/**
 * From REEVE_CHAOS_CALLS (default 200), REEVE_CHAOS_SECONDS (default one for each eight calls, at least 20) and
 * REEVE_CHAOS_SEED (default any), and REEVE_CHAOS_LOGS (default none). A run with 2,000 calls or more is a full one.
 */
export function chaosSettings(env: Record<string, string | undefined>): ChaosSettings {
  const calls = whole("REEVE_CHAOS_CALLS", env) ?? 200;
  const seconds = whole("REEVE_CHAOS_SECONDS", env) ?? Math.max(20, calls / 8);
  const seed = whole("REEVE_CHAOS_SEED", env) ?? Math.floor(Math.random() * 2 ** 31);
  return {
    calls,
    ms: seconds * 1000,
    seed,
    full: calls >= FULL_CALLS,
    ...(env.REEVE_CHAOS_LOGS ? { logs: env.REEVE_CHAOS_LOGS } : {}),
  };
}

function whole(name: string, env: Record<string, string | undefined>): number | undefined {
  const text = env[name];
  if (text === undefined || text === "") return undefined;
  if (!/^\d{1,9}$/.test(text)) throw new TypeError(`${name}: ${text} is not a whole number`);
  return Number(text);
}
