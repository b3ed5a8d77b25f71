import { type CompleteCall, completeCall } from "../../client/complete-call.ts";
import { CallState, CallStateSchema } from "../../gen/ts/reeve/call/v1/call_pb.ts";
import type { FanOutCall, FanOutPlan } from "../../gen/ts/reeve/fanout/v1/fan_out_service_pb.ts";
import { reasonName } from "../../lib/fault/fault.ts";
import { enumName } from "../print/enum-name.ts";
import { visibleLine } from "../print/escape.ts";
import type { Style } from "../print/style.ts";

/** How the call on one device stands, for a person. */
export interface DeviceLine {
  device: string;
  wave: number;
  status: "waiting" | "held" | "queued" | "running" | "ok" | "failed";
  /** Why, where it is worth saying. */
  note: string;
  /** The call; undefined until it has begun. */
  call: CompleteCall | undefined;
}

/** What is known of a fan-out, device by device. */
export interface Board {
  /** In the order of the plan. */
  lines(): readonly DeviceLine[];
  /** Takes in what happened to a call; the result is its line where that has changed. */
  take(event: FanOutCall): DeviceLine | undefined;
}

/** The board of a plan: everybody waits. */
export function createBoard(plan: FanOutPlan): Board {
  const lines = new Map<string, DeviceLine>();
  for (const { number, devices } of plan.waves) {
    for (const device of devices) {
      lines.set(device, { device, wave: number, status: "waiting", note: "", call: undefined });
    }
  }
  return {
    lines: () => [...lines.values()],
    take({ device, event }) {
      const line = lines.get(device);
      const next = line && event && lineAfter(line, event.event);
      if (next === undefined || (next.status === line?.status && next.note === line.note)) return undefined;
      lines.set(device, next);
      return next;
    },
  };
}

function lineAfter(line: DeviceLine, event: NonNullable<FanOutCall["event"]>["event"]): DeviceLine | undefined {
  if (event.case === "refusal") {
    const reason = event.value.error === undefined ? "" : `${reasonName(event.value.error.reason)}: `;
    return { ...line, status: "failed", note: `${reason}${event.value.message}` };
  }
  if (event.case !== "call") return undefined;
  const call = completeCall(event.value);
  return { ...line, ...statusOf(call), call };
}

/** A program that ended with another code than 0 has not succeeded, as the registry counts it. */
function statusOf(call: CompleteCall): Pick<DeviceLine, "status" | "note"> {
  const code = call.status.output?.exitCode;
  switch (call.status.state) {
    case CallState.SUCCEEDED:
      if (code === undefined || code === 0) return { status: "ok", note: "" };
      return { status: "failed", note: `exit code ${JSON.stringify(code)}` };
    case CallState.RECEIVED:
      return { status: "waiting", note: "" };
    case CallState.HELD:
      return { status: "held", note: call.status.approval?.id ?? "" };
    case CallState.QUEUED:
      return { status: "queued", note: "its device is offline" };
    case CallState.PERMITTED:
    case CallState.DISPATCHED:
      return { status: "running", note: "" };
    default: {
      const state = enumName(CallStateSchema, call.status.state);
      const reason = call.status.error === undefined ? state : reasonName(call.status.error.reason);
      return {
        status: "failed",
        note: call.status.errorMessage === "" ? reason : `${reason}: ${call.status.errorMessage}`,
      };
    }
  }
}

/** A line as it is shown, without the end of the line. */
export function lineText({ device, status, note }: DeviceLine, nameWidth: number, style: Style): string {
  const painted = PAINT[status](style)(status.padEnd(7));
  return `  ${visibleLine(device).padEnd(nameWidth)}  ${painted}  ${style.dim(visibleLine(note))}`.trimEnd();
}

const PAINT: Readonly<Record<DeviceLine["status"], (style: Style) => (text: string) => string>> = {
  waiting: (style) => style.dim,
  held: (style) => style.yellow,
  queued: (style) => style.yellow,
  running: (style) => style.cyan,
  ok: (style) => style.green,
  failed: (style) => style.red,
};
