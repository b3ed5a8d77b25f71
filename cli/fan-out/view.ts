import { create, toJson } from "@bufbuild/protobuf";
import {
  type FanOutPlan,
  type FanOutSummary,
  type WatchFanOutResponse,
  WatchFanOutResponseSchema,
} from "../../gen/ts/reeve/fanout/v1/fan_out_service_pb.ts";
import type { CommandContext } from "../command-context.ts";
import { ExitCode } from "../exit-codes.ts";
import { jsonLine } from "../print/json.ts";
import { exitCodeOfFanOut } from "./exit-code.ts";

/** Shows what happens to a fan-out, and sets the exit code. */
export interface View {
  take(event: WatchFanOutResponse["event"]): void;
  end(summary: FanOutSummary): void;
  /** No human has decided about it in time. It goes on when one does. */
  held(): void;
  /** Resolves when no question is open on the terminal. */
  settled(): Promise<void>;
}

/** For a program: one JSON document a line for each event, the summary last. */
export function jsonView(context: CommandContext): View {
  let plan: FanOutPlan | undefined;
  const print = (event: WatchFanOutResponse["event"]) => {
    const response = create(WatchFanOutResponseSchema, event.case === undefined ? {} : { event });
    context.stdout.write(jsonLine(toJson(WatchFanOutResponseSchema, response)));
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
    held: () => context.setExitCode(ExitCode.HELD),
    settled: () => Promise.resolve(),
  };
}
