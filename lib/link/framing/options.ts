/** How one side of a link behaves. Times are milliseconds. */
export interface FramedOptions {
  /** This side sends at least a frame this often. Default 1000, at least 8. */
  heartbeatMs?: number;
  /** Bytes of items that may be on the way to this side. Default 1 MiB. */
  windowBytes?: number;
  /** Aborted when this side is going away: the other side is told, and what runs goes on. */
  draining?: AbortSignal;
  /** The other side says that it is going away. Called once. */
  onDrain?(): void;
  /** For the side that dials: how long the first answer may take. Default 2000. */
  answerMs?: number;
  /** For the side that is dialed: how long until a silent other side counts as one without framing. Default 1000. */
  plainAfterMs?: number;
}

/** How long the first answer may take where nothing else is said. */
export const DEFAULT_ANSWER_MS = 2000;

/** How long the side that is dialed waits for the other's first message before it speaks without framing. */
export const DEFAULT_PLAIN_AFTER_MS = 1000;
