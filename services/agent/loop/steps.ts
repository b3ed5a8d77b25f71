import type { JsonValue } from "@bufbuild/protobuf";

/** What a run waits for. */
export interface Wait {
  /** What comes later comes under this name, such as "call/run-1-0a…". Comes once. */
  name: string;
  /** How long it is waited for, in seconds. Default: as long as it takes. */
  seconds?: number;
}

/** What a wait came to. */
export interface Answer {
  name: string;
  /** What came. Undefined where the wait's time was over first. */
  value: JsonValue | undefined;
}

/**
 * How a run touches the world. An engine that keeps the results can play a run again from its beginning and go on where it
 * stopped, on another machine or days later. So what the run does between two steps depends on nothing but its input and
 * what the steps gave it: no clock, no randomness, and one step at a time.
 */
export interface Steps {
  /**
   * Runs an effect and gives its result, which is plain JSON; an engine that keeps results runs it again only where it is not known to have
   * ended. An effect that throws may be tried again: what must not be is returned as a value.
   *
   * @param name unique in the run, the same whenever the run is played again.
   * @param effect receives a signal that is aborted when the run is canceled.
   */
  do<T>(name: string, effect: (signal: AbortSignal) => Promise<T>): Promise<T>;
  /** Waits for the first of several. Undefined as soon as the run is canceled; then it waits for what is asked next. */
  answer(waits: readonly Wait[]): Promise<Answer | undefined>;
  /** Aborted when the run is canceled. A run that is played again sees it aborted between the same two steps. */
  readonly signal: AbortSignal;
}
