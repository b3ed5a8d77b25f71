import type { AgentEvent } from "../../services/agent/loop/events.ts";
import type { CallReport } from "../../services/agent/toolbox/toolbox.ts";
import type { Output } from "../command-context.ts";
import { visible, visibleLine } from "../print/escape.ts";
import type { Style } from "../print/style.ts";

/** Where a narration goes. */
export interface NarratorOptions {
  /** Where the model's text goes. */
  text: Output;
  /** Where everything else goes. */
  activity: Output;
  /** The style of the latter. */
  style: Style;
  /** A call waits for a human. */
  onHeld(call: { callId: string; approvalId: string }): void;
  /** A call that was held waits no more. */
  onReleased(callId: string): void;
}

/** The most characters of an input or an error that are shown. */
const SHORT = 160;

/** Shows a person what a model does, as it does it: its text, the tools it uses, and how that went. */
export function createNarrator(options: NarratorOptions): (event: AgentEvent) => void {
  const { text, activity, style } = options;
  // Text that has not ended its line yet; activity goes below it, not beside it.
  let open = false;
  const endLine = () => {
    if (open) text.write("\n");
    open = false;
  };
  const show = (line: string) => {
    endLine();
    activity.write(`${line}\n`);
  };
  return (event) => {
    switch (event.kind) {
      case "text":
        text.write(visible(event.text));
        open = !event.text.endsWith("\n");
        break;
      case "tool_started":
        show(`  ${style.cyan(event.tool)} ${style.dim(shorten(JSON.stringify(event.input)))}`);
        break;
      case "tool_report":
        report(event.report, options);
        break;
      case "tool_ended":
        if (event.result.isError) show(`  ${style.red(`${event.tool} failed:`)} ${shorten(event.result.content)}`);
        else show(`  ${style.green(`${event.tool} ${event.result.state ?? "done"}`)}`);
        break;
      case "turn_ended":
        endLine();
        break;
      case "turn_started":
      case "question":
        break;
    }
  };
}

function report(news: CallReport, { onHeld, onReleased }: NarratorOptions): void {
  if (news.kind === "held") onHeld(news);
  if (news.kind === "state" && news.state !== "held") onReleased(news.callId);
}

function shorten(text: string): string {
  const line = visibleLine(text);
  return line.length > SHORT ? `${line.slice(0, SHORT)}…` : line;
}
