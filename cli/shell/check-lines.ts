import { performance } from "node:perf_hooks";
import { analyzeText, type Place } from "../../lib/command/analyze.ts";
import { failingExamples } from "../../lib/command/verify.ts";
import type { CommandContext } from "../command-context.ts";
import { ExitCode } from "../exit-codes.ts";
import { jsonLine } from "../print/json.ts";

/** How much is written at once. */
const BATCH = 64 * 1024;

/** Analyzes one text a line, with rules whose own examples hold. A line of another form is rejected like a text that cannot be looked at. */
export async function checkLines(place: Place, context: CommandContext): Promise<void> {
  const failing = failingExamples();
  if (failing.length > 0) throw new Error(`rules whose examples do not hold: ${failing.join("; ")}`);
  warmUp(place);
  let rest = "";
  let out = "";
  const decoder = new TextDecoder();
  const take = (line: string): void => {
    if (line.trim() === "") return;
    const { text, bad } = answer(line, place);
    if (bad) context.setExitCode(ExitCode.USAGE);
    out += text;
    if (out.length < BATCH) return;
    context.stdout.write(out);
    out = "";
  };
  for await (const chunk of context.stdin) {
    const lines = (rest + (typeof chunk === "string" ? chunk : decoder.decode(chunk, { stream: true }))).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) take(line);
  }
  take(rest);
  if (out !== "") context.stdout.write(out);
}

/** The grammar's seldom parts, which no rule's examples hold. */
const SELDOM = [
  "((a = 1 + 2)) && [[ -f a && ! $b == c* ]] || test -e d",
  "case $1 in a|b) ls ;; *) rm -rf / ;; esac",
  'for f in *.txt; do cat "$f"; done; while read -r l; do echo $l; done < a',
  "if ls a; then ls b; elif ls c; then ls d; else ls e; fi",
  "f() { ls; }; f; (ls; pwd) | { wc -l; }",
  "cat <<'E' | sort\na\nE",
  'cat <<E <<< "x$y" 2>&1 >/dev/null\n$(id) `id`\nE',
  `diff <(ls a) >(sh); a=(1 2); echo \${a[@]} \${b:-c} \${d//e/f} $((1+2))`,
  "$'\\x72m' \"r\"m -rf '/' {a,b}/? [a-z]* ~root \\rm",
  "sudo -u me env -i A=b nice -n 5 timeout 5 bash -c 'xargs -0 rm -rf /'",
  "find / -exec sh -c 'rm -rf \"$0\"' {} + ; ls &",
  "ls\u00a0-l \u202e; \u0440m -rf /; echo \u0007 é",
  "ls |",
];

/** So that the times are those of compiled code: every example and every part of the grammar has been looked at several times. */
function warmUp(place: Place): void {
  for (let round = 0; round < 3; round++) {
    failingExamples();
    for (const text of SELDOM) for (let again = 0; again < 10; again++) analyzeText(text, place);
  }
}

function answer(line: string, place: Place): { text: string; bad: boolean } {
  const read = readLine(line);
  if (read === undefined) {
    return { text: jsonLine({ id: null, verdict: "reject", rules: ["command/invalid-line"], ms: 0 }), bad: true };
  }
  const start = performance.now();
  const { verdict, reasons } = analyzeText(read.cmd, place);
  const ms = Math.round((performance.now() - start) * 1000) / 1000;
  return { text: jsonLine({ id: read.id, verdict, rules: reasons.map(({ rule }) => rule), ms }), bad: false };
}

function readLine(line: string): { id: string | number | null; cmd: string } | undefined {
  try {
    const { id = null, cmd } = JSON.parse(line) as { id?: unknown; cmd?: unknown };
    if (typeof cmd !== "string") return undefined;
    return { id: typeof id === "string" || typeof id === "number" ? id : null, cmd };
  } catch {
    return undefined;
  }
}
