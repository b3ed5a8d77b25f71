import type { CommandContext } from "./command-context.ts";
import { visibleLine } from "./print/escape.ts";

/** What a list shows, and whether that is all. */
export interface Listed {
  /** What is listed, such as "calls". */
  things: string;
  shown: number;
  /** Where the next page starts; empty where there is none. */
  nextPageToken: string;
  /** How many more there are, where that is known. */
  more?: number | undefined;
  /** What would make it other than empty. */
  hint?: string;
}

/** Says under a list, on standard error, that it is empty, or that there is more and how to see it. */
export function noteListed({ things, shown, nextPageToken, more, hint = "" }: Listed, context: CommandContext): void {
  if (nextPageToken !== "") {
    const count = more === undefined ? "more" : `${more} more`;
    const token = visibleLine(nextPageToken);
    context.stderr.write(
      `reeve: ${shown} ${things} shown, and there are ${count}: --limit N, or --page-token ${token}\n`,
    );
  } else if (shown === 0) context.stderr.write(`reeve: no ${things}${hint === "" ? "" : `: ${hint}`}\n`);
}
