import type { RunEngine } from "../engine/engine.ts";

/** The engines of a service. */
export interface Engines {
  readonly hasDurable: boolean;
  /** The engine of a run. Throws for a durable run where there is no engine for it. */
  of(durable: boolean): RunEngine;
  close(): Promise<void>;
}

/** The engine of every service, and the durable one where there is one. */
export function createEngines(inline: RunEngine, durable: RunEngine | undefined): Engines {
  return {
    hasDurable: durable !== undefined,
    of(isDurable) {
      const engine = isDurable ? durable : inline;
      if (engine === undefined) throw new Error("the run is durable, and there is no engine for that here");
      return engine;
    },
    async close() {
      await Promise.all([inline.close(), durable?.close()]);
    },
  };
}
