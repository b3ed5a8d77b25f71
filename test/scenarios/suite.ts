import { describe } from "vitest";
import { describeDecisions } from "./suite/decisions.ts";
import { describeHttp } from "./suite/http.ts";
import { describeRecord } from "./suite/record.ts";
import { describeRunning } from "./suite/running.ts";
import { type StartBackend, useScene } from "./suite/scene.ts";
import { describeViews } from "./suite/views.ts";

/** What a backend can show of itself. */
export interface SuiteOptions {
  /** Its bus can be subscribed to from the tests. */
  bus: boolean;
}

/** What a governed call is and does, whatever the parts of the control plane run on. */
export function describeScenarios(name: string, start: StartBackend, { bus }: SuiteOptions): void {
  describe(name, () => {
    const scene = useScene(start);
    describeDecisions(scene);
    describeRunning(scene);
    describeViews(scene);
    describeHttp(scene);
    describeRecord(scene, bus);
  });
}
