import { create } from "@bufbuild/protobuf";
import { CallState } from "../../../gen/ts/reeve/call/v1/call_pb.ts";
import { type ErrorDetail, ErrorDetailSchema, ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { type FanOutSummary, FanOutSummarySchema } from "../../../gen/ts/reeve/fanout/v1/fan_out_service_pb.ts";
import type { GovernedCall } from "../calls/governed-call.ts";
import type { Waves } from "./plan.ts";

/** How the calls of a fan-out stand, by device name. A device that was never called is not in it. */
export type Results = ReadonlyMap<string, GovernedCall>;

/** Why no further wave is started. */
export interface Stop {
  error: ErrorDetail;
  message: string;
}

/** When a fan-out goes no further. */
export interface StopRules {
  fanOutId: string;
  /** The first wave is a canary: the others wait for the success of all of it. */
  canary: boolean;
  /** So many calls that have not succeeded end it. At least 1. */
  stopAfterFailures: number;
}

/**
 * What became of one call. "succeeded": the tool ran and, where it ran a program, that ended with 0. "queued": waits for a
 * device that is offline. Everything else is no success, whether it failed, waits or is not known.
 */
export function verdictOf(call: GovernedCall): "succeeded" | "queued" | "failed" {
  if (call.status.state === CallState.QUEUED) return "queued";
  return call.status.state === CallState.SUCCEEDED && programCode(call) === 0 ? "succeeded" : "failed";
}

/** Whether to stop after a wave. Pure. */
export function stopAfterWave(rules: StopRules, waveNumber: number, results: Results): Stop | undefined {
  const open = [...results].filter(([, call]) => verdictOf(call) !== "succeeded").map(([device]) => device);
  const what = `${open.length} of ${results.size} calls so far have not succeeded`;
  if (open.length > 0 && waveNumber === 1 && rules.canary) return stopped(rules.fanOutId, "canary", what);
  return open.length >= rules.stopAfterFailures ? stopped(rules.fanOutId, "failures", what) : undefined;
}

function stopped(fanOutId: string, why: string, message: string): Stop {
  const error = create(ErrorDetailSchema, {
    reason: ErrorReason.FAN_OUT_STOPPED,
    metadata: { fan_out_id: fanOutId, why },
  });
  return { error, message };
}

/** How a fan-out ended. It succeeded only where every device of the plan did. Pure. */
export function summaryOf(fanOutId: string, waves: Waves, results: Results, stop: Stop | undefined): FanOutSummary {
  const planned = waves.flat().map(({ name }) => name);
  const named = (verdict: ReturnType<typeof verdictOf>) =>
    planned.filter((name) => {
      const call = results.get(name);
      return call !== undefined && verdictOf(call) === verdict;
    });
  const [succeeded, queued, failed] = [named("succeeded"), named("queued"), named("failed")];
  const notStarted = planned.filter((name) => !results.has(name));
  const parts = [
    `${succeeded.length} of ${planned.length} succeeded`,
    ...(failed.length > 0 ? [`${failed.length} did not`] : []),
    ...(queued.length > 0 ? [`${queued.length} queued for devices that are offline`] : []),
    ...(notStarted.length > 0 ? [`${notStarted.length} never started`] : []),
  ];
  return create(FanOutSummarySchema, {
    fanOutId,
    succeeded: succeeded.length === planned.length,
    devices: planned.length,
    succeededCount: succeeded.length,
    failed: Object.fromEntries(failed.flatMap((name) => entryOf(name, results.get(name)))),
    queued,
    notStarted,
    ...(stop === undefined || notStarted.length === 0 ? {} : { stopped: stop.error }),
    message: stop === undefined || notStarted.length === 0 ? parts.join(", ") : `${parts.join(", ")}: ${stop.message}`,
  });
}

function entryOf(name: string, call: GovernedCall | undefined): [string, GovernedCall][] {
  if (call === undefined) return [];
  const { output: _left, ...rest } = call.status;
  if (call.status.state !== CallState.SUCCEEDED) return [[name, { ...call, status: rest }]];
  // The call itself succeeded; without its output it would not show why it counts as a failure.
  const code = programCode(call);
  const error = create(ErrorDetailSchema, { reason: ErrorReason.TOOL_FAILED, metadata: { exit_code: String(code) } });
  const errorMessage = `the program ended with the exit code ${code}`;
  return [[name, { ...call, status: { ...rest, error, errorMessage } }]];
}

/** The exit code of the program that a call ran; 0 for tools that run none. -1 for a program that a signal ended. */
function programCode({ status: { output } }: GovernedCall): number {
  if (output === undefined || !("exitCode" in output)) return 0;
  return typeof output.exitCode === "number" ? output.exitCode : -1;
}

/** The waves of a plan, as callers see them. */
export function wavesOf(waves: Waves): { number: number; devices: string[] }[] {
  return waves.map((wave, index) => ({ number: index + 1, devices: wave.map(({ name }) => name) }));
}
