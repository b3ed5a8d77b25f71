import type { FanOutPlan } from "../../gen/ts/reeve/fanout/v1/fan_out_service_pb.ts";
import type { Tool } from "../../gen/ts/reeve/tool/v1/tool_pb.ts";
import type { CommandContext } from "../command-context.ts";
import { ExitCode } from "../exit-codes.ts";
import { visibleLine } from "../print/escape.ts";
import type { Session } from "../session.ts";
import { type Board, createBoard } from "./board.ts";
import { createDisplay, type Display } from "./display.ts";
import { exitCodeOfFanOut } from "./exit-code.ts";
import { createQuestions } from "./questions.ts";
import type { View } from "./view.ts";

/** What showing a fan-out to a person needs. */
export interface PersonViewOptions {
  session: Session;
  tool: Tool;
  context: CommandContext;
  fanOutId: string;
}

/** For a person: a line for each device, what came back, and questions about what is held. */
export function personView({ session, tool, context, fanOutId }: PersonViewOptions): View {
  let plan: FanOutPlan | undefined;
  let board: Board | undefined;
  let display: Display | undefined;
  const questions = createQuestions(session, context, () => display?.yield());
  const begin = (newPlan: FanOutPlan): void => {
    // A stream that was opened again sends the same plan again.
    if (plan !== undefined) return;
    plan = newPlan;
    board = createBoard(newPlan);
    display = createDisplay(board, tool, context);
    display.say(
      `${visibleLine(newPlan.fanOutId)}: ${count(board.lines().length, "device")} in ${count(newPlan.waves.length, "wave")}`,
    );
  };
  return {
    take(event) {
      if (event.case === "plan") begin(event.value);
      else if (event.case === "held") questions.ask({ id: fanOutId, approvalId: event.value.approvalId });
      else if (event.case === "wave") {
        questions.withdraw(fanOutId);
        const { number, devices } = event.value;
        display?.say(`wave ${number}: ${devices.map(visibleLine).join(", ")}`);
      } else if (event.case === "call") {
        const line = board?.take(event.value);
        if (line === undefined) return;
        display?.changed(line);
        const { id = "", status } = line.call ?? {};
        const approvalId = status?.approval?.id ?? "";
        if (line.status === "held") questions.ask({ id, approvalId });
        else questions.withdraw(id);
      }
    },
    end(summary) {
      display?.say(visibleLine(summary.message));
      if (!summary.succeeded && summary.notStarted.length > 0) {
        display?.say(`never started: ${summary.notStarted.map(visibleLine).join(", ")}`);
      }
      if (plan !== undefined) context.setExitCode(exitCodeOfFanOut(plan, summary));
    },
    held() {
      display?.say(`${visibleLine(fanOutId)} is held, and goes on when it is approved`);
      context.setExitCode(ExitCode.HELD);
    },
    settled: questions.settled,
  };
}

function count(number: number, what: string): string {
  return `${number} ${what}${number === 1 ? "" : "s"}`;
}
