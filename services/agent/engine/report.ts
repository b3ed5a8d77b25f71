import type { JsonObject } from "@bufbuild/protobuf";
import { RunState } from "../../../gen/ts/reeve/agent/v1/run_pb.ts";
import { shortenJson, shortenText } from "../../../lib/model-tools/shorten.ts";
import { questionAnswer } from "../loop/ask-user.ts";
import type { AgentCall, AgentEvent, AgentResult } from "../loop/events.ts";
import type { Usage } from "../providers/model.ts";
import { callIdOf } from "../run-input/call-id.ts";
import { callAnswer } from "../toolbox/toolbox.ts";
import { endError } from "./end-error.ts";
import type { RunEnd, RunEventBody, RunJournal, Wait } from "./engine.ts";

/** Writes what happens in a run into the journal, in order. */
export interface Reporter {
  onEvent(event: AgentEvent): void;
  /** Resolves when all of it is on disk. Throws what kept it from being written. */
  written(): Promise<void>;
}

/** How much of an input and of a result an event holds, in characters: the call has them whole. */
const MAX_INPUT = 4000;
const MAX_RESULT = 8000;

/** A reporter for one run. A run that is played again reports the same again, which changes nothing. */
export function createReporter(journal: RunJournal, runId: string): Reporter {
  let turn = 0;
  let lastUse = "";
  /** By use, the question that it asks. */
  const questions = new Map<string, string>();
  let writing: Promise<void> = Promise.resolve();
  const write = (job: () => Promise<void>): void => {
    writing = writing.then(job);
    // Reported by `written`; until then it must not end the process.
    writing.catch(() => undefined);
  };
  return {
    onEvent(event) {
      if (event.kind === "turn_started") turn = event.turn;
      const row = rowOf(event, turn);
      if (row !== undefined) write(() => journal.event(runId, row.key, row.event));
      const wait = waitOf(event, runId);
      if (wait !== undefined) write(() => journal.wait(runId, wait));
      if (event.kind === "tool_started") lastUse = event.id;
      if (event.kind === "question") questions.set(lastUse, questionAnswer(event.questionId));
      if (event.kind !== "tool_ended") return;
      const over = questions.get(event.id) ?? callName(runId, event.id);
      write(() => journal.settled(runId, over));
    },
    written: () => writing,
  };
}

/** The event as it is stored, and its name in the run. Text comes with the end of its turn. */
function rowOf(event: AgentEvent, turn: number): { key: string; event: RunEventBody } | undefined {
  switch (event.kind) {
    case "turn_started":
      return { key: `turn/${event.turn}`, event: { case: "turnStarted", value: { turn: event.turn } } };
    case "turn_ended": {
      const { stop, text } = event;
      const value = { turn: event.turn, text, stop, usage: usageOf(event.usage) };
      return { key: `turn/${event.turn}/ended`, event: { case: "turnEnded", value } };
    }
    case "tool_started": {
      const value = { toolUseId: event.id, tool: event.tool, input: shortInput(event.input) };
      return { key: useKey(turn, event.id), event: { case: "toolStarted", value } };
    }
    case "tool_report": {
      const report = reportOf(event);
      if (report === undefined) return undefined;
      const value = { toolUseId: event.id, tool: event.tool, ...report };
      return { key: `call/${report.callId}/${report.what}`, event: { case: "toolReport", value } };
    }
    case "tool_ended": {
      const { callId = "", state = "", isError, content } = event.result;
      const value = {
        toolUseId: event.id,
        tool: event.tool,
        callId,
        state,
        isError,
        content: shortenText(content, MAX_RESULT),
      };
      return { key: `${useKey(turn, event.id)}/ended`, event: { case: "toolEnded", value } };
    }
    case "question": {
      const { questionId, text } = event;
      return { key: `question/${questionId}`, event: { case: "question", value: { questionId, text } } };
    }
    default:
      return undefined;
  }
}

function shortInput(input: JsonObject): JsonObject {
  return JSON.parse(shortenJson(input, MAX_INPUT)) as JsonObject;
}

/** A model may give two uses of different turns one id. */
function useKey(turn: number, id: string): string {
  return `turn/${turn}/use/${id}`;
}

function reportOf({ report }: Extract<AgentEvent, { kind: "tool_report" }>) {
  if (report.kind === "sent") return { callId: report.callId, what: "sent" };
  if (report.kind === "held") return { callId: report.callId, what: "held", approvalId: report.approvalId };
  if (report.kind === "state" && report.state === "queued") return { callId: report.callId, what: "queued" };
  return undefined;
}

/** The name that a call's end comes by: of the id that it was sent with, which the registry may have made longer. */
function callName(runId: string, toolUseId: string): string {
  return callAnswer(callIdOf(runId, toolUseId));
}

function waitOf(event: AgentEvent, runId: string): Wait | undefined {
  if (event.kind === "question") {
    return {
      name: questionAnswer(event.questionId),
      what: "question",
      id: event.questionId,
      text: event.text,
    };
  }
  if (event.kind !== "tool_report") return undefined;
  const { report, tool } = event;
  const call = { name: callName(runId, event.id), id: report.callId, text: tool };
  if (report.kind === "held") return { ...call, what: "held", approvalId: report.approvalId };
  if (report.kind === "sent") return { ...call, what: "running" };
  // That a call is held comes with its approval.
  if (report.kind !== "state" || report.state === "held") return undefined;
  return { ...call, what: report.state === "queued" ? "queued" : "running" };
}

/** A run's end, as the loop reports it. */
export function endOf({ kind, text, turns, usage, calls, error }: AgentResult): RunEnd {
  return {
    state: STATES[kind],
    end: kind,
    text,
    turns,
    usage: usageOf(usage),
    calls: calls.map(callOf),
    ...(error && { error: endError(error) }),
  };
}

const STATES = {
  done: RunState.SUCCEEDED,
  turn_limit: RunState.FAILED,
  token_limit: RunState.FAILED,
  canceled: RunState.CANCELED,
  refused: RunState.FAILED,
  error: RunState.FAILED,
} as const satisfies Readonly<Record<AgentResult["kind"], RunEnd["state"]>>;

function callOf({ toolUseId, tool, isError, callId = "", approvalId = "", state = "" }: AgentCall) {
  return { toolUseId, tool, isError, callId, approvalId, state };
}

function usageOf({ inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens, costUsdMicros: cost }: Usage) {
  return {
    inputTokens: BigInt(inputTokens),
    outputTokens: BigInt(outputTokens),
    cacheReadTokens: BigInt(cacheReadTokens),
    cacheWriteTokens: BigInt(cacheWriteTokens),
    ...(cost !== undefined && { costUsdMicros: BigInt(Math.round(cost)) }),
  };
}
