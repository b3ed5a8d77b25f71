import { text as readAll } from "node:stream/consumers";
import { type Analysis, analyzeText, type Place, type Verdict } from "../../lib/command/analyze.ts";
import { LIMITS } from "../../lib/command/limits.ts";
import type { CommandContext } from "../command-context.ts";
import { UsageError } from "../errors/usage-error.ts";
import { ExitCode } from "../exit-codes.ts";
import { jsonDocument } from "../print/json.ts";
import { checkLines } from "./check-lines.ts";
import { explanation } from "./explanation.ts";

/** The options of `reeve shell check`. */
export interface CheckFlags {
  json?: true;
  jsonl?: true;
  cwd?: string;
  root?: string[];
}

const EXIT_CODES: Readonly<Record<Verdict, number>> = {
  allow: ExitCode.OK,
  ask: ExitCode.HELD,
  block: ExitCode.DENIED,
  reject: ExitCode.USAGE,
};

/** `reeve shell check`: says what a shell text comes to. */
export async function check(text: string | undefined, flags: CheckFlags, context: CommandContext): Promise<void> {
  const place: Place = { cwd: flags.cwd, roots: flags.root?.length ? flags.root : undefined };
  if (flags.jsonl) {
    if (text !== undefined && text !== "-") throw new UsageError("--jsonl reads its texts from the standard input");
    return await checkLines(place, context);
  }
  const written = text === undefined || text === "-" ? await readAll(context.stdin) : text;
  const analysis = analyzeText(written, place);
  context.setExitCode(EXIT_CODES[analysis.verdict]);
  context.stdout.write(flags.json ? jsonDocument(asJson(analysis)) : explanation(analysis, context));
}

function asJson({ verdict, reasons, plan }: Analysis) {
  return JSON.parse(
    JSON.stringify({ verdict, reasons, plan: plan ?? null, limits: verdict === "reject" ? LIMITS : undefined }),
  );
}
