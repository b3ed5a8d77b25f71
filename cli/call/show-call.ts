import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { isEnd } from "../../client/call-progress.ts";
import type { CompleteCall } from "../../client/complete-call.ts";
import { CallState, CallStateSchema } from "../../gen/ts/reeve/call/v1/call_pb.ts";
import type { Tool } from "../../gen/ts/reeve/tool/v1/tool_pb.ts";
import type { CommandContext } from "../command-context.ts";
import { describeDetail, errorText } from "../errors/describe-error.ts";
import { enumName } from "../print/enum-name.ts";
import { visibleLine } from "../print/escape.ts";
import { readable } from "../print/readable.ts";
import { styleFor } from "../print/style.ts";
import { timeText } from "../print/time.ts";
import type { LiveOutput } from "./live-output.ts";

/** Shows a call as it stands to a person: its output on standard output, and anything else on standard error. */
export function showCall(call: CompleteCall, tool: Tool, live: LiveOutput, context: CommandContext): void {
  const note = (text: string) => context.stderr.write(`reeve: ${text}\n`);
  if (call.status.state === CallState.SUCCEEDED) showOutput(call, tool, live, context, note);
  else if (isEnd(call.status.state)) context.stderr.write(failureText(call));
  else if (call.status.state === CallState.HELD)
    note(heldText({ id: call.id, approvalId: call.status.approval?.id ?? "" }));
  else if (call.status.state === CallState.QUEUED) note(queuedText(call));
  else note(`${call.id} goes on: \`reeve call watch ${call.id}\` shows how`);
}

/** What becomes of a call whose device is offline. */
export function queuedText(call: Pick<CompleteCall, "id" | "spec">): string {
  const id = visibleLine(call.id);
  return `${id} is queued until ${timeText(call.spec.queueExpireTime)} for its device, which is offline: \`reeve call watch ${id}\` waits for it, \`reeve call cancel ${id}\` ends it`;
}

/** What to do about a call that a human must decide on. */
export function heldText(call: { id: string; approvalId: string }): string {
  const id = visibleLine(call.approvalId);
  return `${visibleLine(call.id)} is held, and runs once an operator approves it: reeve approval approve ${id}`;
}

/** A tool that runs a program: its output has what the program printed. */
export function runsProgram({ outputSchema }: Tool): boolean {
  const properties = outputSchema?.properties;
  return typeof properties === "object" && properties !== null && "stdout" in properties && "exitCode" in properties;
}

function showOutput(
  call: CompleteCall,
  tool: Tool,
  live: LiveOutput,
  context: CommandContext,
  note: (text: string) => void,
): void {
  const output: JsonObject = call.status.output ?? {};
  let isCut = output.truncated === true;
  if (runsProgram(tool)) {
    // What was printed as it came is whole, or says itself what was left out; only the stored result is head and tail.
    isCut &&= STREAMS.some((name) => live.length(name) < lengthOf(output[name]));
    for (const name of STREAMS) {
      const text = output[name];
      if (live.length(name) === 0 && typeof text === "string") live.print(name, text);
    }
  } else {
    context.stdout.write(readable(output, styleFor(context, context.stdout)));
  }
  if (isCut) note("there was more: part of it was left out");
  if (call.status.outputSanitized) note("control characters or what looked like secrets were taken out");
}

const STREAMS = ["stdout", "stderr"] as const;

function lengthOf(text: JsonValue | undefined): number {
  return typeof text === "string" ? text.length : 0;
}

function failureText(call: CompleteCall): string {
  const state = enumName(CallStateSchema, call.status.state).replaceAll("_", " ");
  const message = call.status.errorMessage === "" ? `the call ended as ${state}` : call.status.errorMessage;
  const report =
    call.status.error === undefined
      ? { reason: "", message, hints: [], metadata: {}, violations: [], exitCode: 0 }
      : describeDetail(call.status.error, message);
  const named = { ...report, message: `${state}: ${report.message}`, hints: [...report.hints, `call: ${call.id}`] };
  return errorText(named);
}
