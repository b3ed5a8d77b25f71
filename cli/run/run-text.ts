import type { JsonObject } from "@bufbuild/protobuf";
import { type Run, type RunEvent, RunState, RunStateSchema, type RunWait } from "../../gen/ts/reeve/agent/v1/run_pb.ts";
import { enumName } from "../print/enum-name.ts";
import { visible, visibleLine } from "../print/escape.ts";
import { namedId } from "../print/named-id.ts";
import type { Style } from "../print/style.ts";
import { timeAndAge } from "../print/time.ts";

/** The most characters of an input or an error that are shown. */
const SHORT = 160;

/** The facts of a run, for a person. */
export function runFacts(run: Run, now: number): JsonObject {
  const { spec, status } = run;
  const facts: JsonObject = {
    run: run.id,
    state: enumName(RunStateSchema, status?.state),
    model: spec?.model ?? "",
    agent: spec?.agent ?? "",
    devices: spec?.devices.join(", ") ?? "",
    "asked by": namedId(run.principalName, run.principalId),
    asked: timeAndAge(run.createTime, now),
    ended: timeAndAge(status?.endTime, now),
    untrusted: status?.untrusted ?? false,
    durable: status?.durable ?? false,
    purpose: spec?.purpose ?? "",
    prompt: spec?.prompt ?? "",
    turns: status?.turns ?? 0,
    calls: status?.calls.map(({ tool, state, callId }) => ({ tool, state, call: callId })) ?? [],
    "waits for": status?.waits.map((wait) => waitText(run.id, wait)).join("\n") ?? "",
    text: status?.text ?? "",
    problem: status?.message ?? "",
    texts: status?.textsRemoved ? "removed: the retention of ended runs is over" : "",
  };
  return Object.fromEntries(
    Object.entries(facts).filter(([, value]) => value !== "" && !(Array.isArray(value) && value.length === 0)),
  );
}

/** What a run waits for, and what to do about it. */
export function waitText(runId: string, { what, callId, approvalId, questionId, text }: RunWait): string {
  if (what === "question") return `an answer to ${JSON.stringify(text)}: reeve run answer ${runId} ${questionId} TEXT`;
  if (what === "held") return `${text} is held: reeve approval approve ${approvalId} (call ${callId})`;
  return `${text} is ${what} (call ${callId})`;
}

/** An event of a run, for a person: lines without the end of the last. Undefined: there is nothing to say. */
export function eventText(runId: string, { event }: RunEvent, style: Style): string | undefined {
  switch (event.case) {
    case "turnStarted":
      return style.dim(`turn ${event.value.turn}`);
    case "turnEnded":
      return event.value.text === "" ? undefined : visible(event.value.text);
    case "toolStarted":
      return `  ${style.cyan(visibleLine(event.value.tool))} ${style.dim(short(JSON.stringify(event.value.input ?? {})))}`;
    case "toolReport": {
      const { tool, what, callId, approvalId } = event.value;
      if (what === "held")
        return `  ${style.yellow(`${visibleLine(tool)} held`)}: reeve approval approve ${approvalId} ${style.dim(`(call ${callId})`)}`;
      return what === "queued"
        ? `  ${style.yellow(`${visibleLine(tool)} queued`)}: its device is offline ${style.dim(`(call ${callId})`)}`
        : undefined;
    }
    case "toolEnded": {
      const { tool, state, isError, content, callId } = event.value;
      const call = callId === "" ? "" : ` ${style.dim(`(call ${callId})`)}`;
      if (!isError) return `  ${style.green(`${visibleLine(tool)} ${state || "done"}`)}${call}`;
      return `  ${style.red(`${visibleLine(tool)} failed:`)} ${short(content)}${call}`;
    }
    case "question": {
      const { questionId, text } = event.value;
      return `  ${style.yellow("asks")}: ${visibleLine(text)}\n  reeve run answer ${runId} ${questionId} TEXT`;
    }
    case "answer":
      return `  ${style.green("answered")}: ${short(event.value.text)}`;
    case "state":
      return stateText(event.value.state, event.value.status?.message ?? "");
    default:
      return undefined;
  }
}

function stateText(state: RunState, message: string): string | undefined {
  if (state === RunState.PENDING || state === RunState.RUNNING) return undefined;
  return `${enumName(RunStateSchema, state)}${message === "" ? "" : `: ${visibleLine(message)}`}`;
}

function short(text: string): string {
  const line = visibleLine(text);
  return line.length > SHORT ? `${line.slice(0, SHORT)}…` : line;
}
