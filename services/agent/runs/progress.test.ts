import { create } from "@bufbuild/protobuf";
import { expect, it } from "vitest";
import { RunEventSchema, RunStatusSchema } from "../../../gen/ts/reeve/agent/v1/run_pb.ts";
import { addEvent } from "./progress.ts";

/** The cost of a run whose turns cost this. */
function costOf(...costs: (bigint | undefined)[]): bigint | undefined {
  const status = create(RunStatusSchema);
  for (const cost of costs) {
    const usage = { inputTokens: 5n, ...(cost !== undefined && { costUsdMicros: cost }) };
    addEvent(status, create(RunEventSchema, { event: { case: "turnEnded", value: { usage } } }));
  }
  expect(status.usage?.inputTokens).toBe(5n * BigInt(costs.length));
  return status.usage?.costUsdMicros;
}

it("adds up what a run cost as long as the cost of each turn is known", () => {
  expect(costOf(1n)).toBe(1n);
  expect(costOf(1n, 2n, 3n)).toBe(6n);
  expect(costOf(undefined)).toBeUndefined();
  expect(costOf(1n, undefined, 3n)).toBeUndefined();
});
