import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { errorText } from "../../../lib/model-tools/error-text.ts";
import { type CallView, callAnswer, type Toolbox, type ToolCall, type ToolResult } from "../toolbox/toolbox.ts";
import { answerResult, questionAnswer } from "./ask-user.ts";
import type { Answer, Steps, Wait } from "./steps.ts";

/** A use of a tool that waits for its end. */
export interface OpenUse {
  readonly wait: Wait;
  /** Takes what was waited for. Undefined: it waits once more. */
  take(answer: Answer): Promise<ToolResult | undefined>;
  /** The run is canceled. Undefined: it waits for its end. */
  cancel(): Promise<ToolResult | undefined>;
}

/** Hands a call over. Returns its end where it has ended already. */
export async function openCall(call: ToolCall, toolbox: Toolbox, steps: Steps): Promise<ToolResult | OpenUse> {
  const name = callAnswer(call.callId);
  let view: CallView = await steps.do(`${name}/submit`, () => toolbox.submit(call));
  if (view.kind === "ended") return view.result;
  let looks = 0;
  let canceled = false;
  const see = (now: CallView): ToolResult | undefined => {
    view = now;
    return now.kind === "ended" ? now.result : undefined;
  };
  return {
    get wait() {
      const seconds = view.kind === "waiting" ? view.seconds : undefined;
      return { name, ...(seconds !== undefined && { seconds }) };
    },
    async take({ value }) {
      looks++;
      const why = { timeOver: value === undefined, canceled };
      return see(await steps.do(`${name}/look/${looks}`, () => toolbox.look(call, why)));
    },
    async cancel() {
      canceled = true;
      return see(await steps.do(`${name}/cancel`, () => toolbox.cancel(call)));
    },
  };
}

/** A question to a person, which was asked. */
export function openQuestion(questionId: string, seconds: number): OpenUse {
  return {
    wait: { name: questionAnswer(questionId), seconds },
    take: async ({ value }) => answerResult(value),
    cancel: async () => ({
      content: errorText({ reason: ErrorReason.CANCELED, message: "the run was canceled" }, "the run"),
      isError: true,
    }),
  };
}
