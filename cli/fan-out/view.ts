import { create, toJson } from "@bufbuild/protobuf";
import {
  type FanOutPlan,
  type FanOutResponse,
  FanOutResponseSchema,
  type FanOutSummary,
} from "../../gen/ts/reeve/fanout/v1/fan_out_service_pb.ts";
import type { CommandContext } from "../command-context.ts";
import { ExitCode } from "../exit-codes.ts";
import { jsonLine } from "../print/json.ts";
import { exitCodeOfFanOut } from "./exit-code.ts";

/** Shows what happens to a fan-out, and sets the exit code. */
export interface View {
  take(event: FanOutResponse["event"]): void;
  end(summary: FanOutSummary): void;
  /** The caller has left before the end. */
  left(): void;
  /** Resolves when no question is open on the terminal. */
  settled(): Promise<void>;
}

/** For a program: one JSON document a line for each event, the summary last. */
export function jsonView(context: CommandContext): View {
  let plan: FanOutPlan | undefined;
  const print = (event: FanOutResponse["event"]) => {
    const response = create(FanOutResponseSchema, event.case === undefined ? {} : { event });
    context.stdout.write(jsonLine(toJson(FanOutResponseSchema, response)));
  };
  return {
    take(event) {
      if (event.case === "plan") plan = event.value;
      print(event);
    },
    end(summary) {
      print({ case: "summary", value: summary });
      if (plan !== undefined) context.setExitCode(exitCodeOfFanOut(plan, summary));
    },
    left: () => context.setExitCode(ExitCode.CANCELED),
    settled: () => Promise.resolve(),
  };
}
