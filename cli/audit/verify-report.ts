import type { JsonObject } from "@bufbuild/protobuf";
import type { LogReport } from "../../lib/audit-verify/verify.ts";
import { visibleLine } from "../print/escape.ts";
import type { Style } from "../print/style.ts";

/** Open permits that are named; the rest are counted. */
const MAX_OPEN = 10;

/** What verifying found, a finding a line. No newline at the end. */
export function renderReport(report: LogReport, style: Style): string {
  const { ok, size, signed, checkpoints, findings, open } = report;
  const head = ok
    ? style.green("The audit log verifies.")
    : style.red(`The audit log does not verify: ${count(findings.length, "finding")}.`);
  return [
    head,
    `${count(size, "record")}, ${signed} of them under a signed checkpoint, ${count(checkpoints, "checkpoint")}`,
    ...findings.map(({ kind, message }) => `${style.red(kind)}  ${visibleLine(message)}`),
    ...openLines(open, style),
  ].join("\n");
}

/** The same for a program. */
export function reportJson({ ok, size, signed, checkpoints, findings, open }: LogReport): JsonObject {
  return {
    ok,
    size,
    signed,
    checkpoints,
    findings: findings.map((finding) => ({ ...finding })),
    open: open.map((permit) => ({ ...permit })),
  };
}

function openLines(open: LogReport["open"], style: Style): string[] {
  if (open.length === 0) return [];
  const named = open
    .slice(0, MAX_OPEN)
    .map(({ callId, index }) => `  ${visibleLine(callId)}, permitted by record ${index}`);
  const rest = open.length > MAX_OPEN ? [`  and ${open.length - MAX_OPEN} more`] : [];
  return [style.yellow(`${count(open.length, "call")} permitted without an end in the log yet:`), ...named, ...rest];
}

function count(number: number, what: string): string {
  return `${number} ${what}${number === 1 ? "" : "s"}`;
}
