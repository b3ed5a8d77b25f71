import { DatabaseError } from "pg";

/**
 * The database cannot be reached, or the connection to it was lost. What a transaction had done is rolled back; a
 * statement outside of one may have happened. Trying again later helps.
 */
export class DatabaseUnreachable extends Error {
  override readonly name = "DatabaseUnreachable";
}

/**
 * The connection was lost while COMMIT was under way: the transaction has happened as a whole or not at all, and it
 * is not known which. Treat it as a failure, and look into the database before the same is done again.
 */
export class CommitUnknown extends Error {
  override readonly name = "CommitUnknown";
}

/**
 * By SQLSTATE: the server ends a session, or cannot begin one for now. 25P03 and 25P04 are transactions that stood still
 * or lasted for too long, 53300 is too many connections.
 */
const SESSION_ENDS = new Set(["57P01", "57P02", "57P03", "57P05", "25P03", "25P04", "53300"]);

/** serialization_failure and deadlock_detected: the server has rolled back, and asks to try again. */
const ASKS_FOR_RETRY = new Set(["40001", "40P01"]);

/** The SQLSTATE of an answer of the server; undefined for everything else. */
export function sqlStateOf(error: unknown): string | undefined {
  return error instanceof DatabaseError ? error.code : undefined;
}

/** Whether an error of the driver means that the connection is gone, and not that a query or its answer is refused. */
export function isConnectionLoss(error: unknown): boolean {
  // The driver's own, about values that it cannot write or read.
  if (error instanceof TypeError || error instanceof RangeError) return false;
  const state = sqlStateOf(error);
  return state === undefined || state.startsWith("08") || SESSION_ENDS.has(state);
}

/** Whether the server has rolled a transaction back for the sake of another one, so that the same may work now. */
export function asksForRetry(error: unknown): boolean {
  return ASKS_FOR_RETRY.has(sqlStateOf(error) ?? "");
}
