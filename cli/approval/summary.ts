import {
  type Approval,
  type ApprovalSpec,
  ApprovalState,
  ApprovalStateSchema,
} from "../../gen/ts/reeve/approval/v1/approval_pb.ts";
import type { ApprovalFullText } from "../../gen/ts/reeve/approval/v1/approval_service_pb.ts";
import { enumName } from "../print/enum-name.ts";
import { visible, visibleLine } from "../print/escape.ts";
import { namedId } from "../print/named-id.ts";
import type { Style } from "../print/style.ts";
import { timeText } from "../print/time.ts";

/** What a human decides on: the summary exactly as policy made it, under a line that says where the approval stands. */
export function renderSummary(approval: Approval, style: Style): string {
  const { id, spec, status } = approval;
  const state = enumName(ApprovalStateSchema, status?.state);
  const expires = status?.state === ApprovalState.PENDING ? `, until ${timeText(approval.expireTime)}` : "";
  const bar = style.yellow("│");
  const summary = visible(spec?.summary ?? "").trimEnd();
  return [
    `${style.bold(`Approval ${visibleLine(id)}`)} (${state}${expires})`,
    ...summary.split("\n").map((line) => `${bar} ${line}`),
    ...decidedLines(approval),
  ].join("\n");
}

/** Where it would run: the device's name, and for a fan-out how many more there are. */
export function whereText({ deviceName, devices }: Pick<ApprovalSpec, "deviceName" | "devices">): string {
  return devices.length > 1 ? `${deviceName} and ${devices.length - 1} more` : deviceName;
}

/** All that is known besides the summary, a line each, and where that is abridged the full text of what would run. */
export function renderDetails(approval: Approval, style: Style, fullText?: ApprovalFullText): string {
  const details = renderFacts(approval, style);
  return fullText === undefined ? details : `${details}\n\n${renderFullText(fullText, style)}`;
}

/** Everything that would run, under the same bar as the summary. */
export function renderFullText({ text, digest }: ApprovalFullText, style: Style): string {
  const bar = style.yellow("│");
  const lines = visible(text).trimEnd().split("\n");
  return [
    style.bold("All that would run, with nothing left out:"),
    ...lines.map((line) => `${bar} ${line}`),
    `${style.dim("digest of the full text:")} ${visibleLine(digest)}`,
  ].join("\n");
}

function renderFacts({ spec, createTime, expireTime }: Approval, style: Style): string {
  if (spec === undefined) return "";
  const facts = {
    call: spec.callId,
    device: spec.devices.length === 0 ? `${spec.deviceName} (${spec.deviceId})` : "",
    devices: spec.devices.map(({ id, name }) => `${name} (${id})`).join(", "),
    tool: spec.tool,
    "asked by": namedId(spec.principalName, spec.principalId),
    purpose: spec.purpose,
    "held by": spec.ruleIds.join(", "),
    why: spec.message,
    arguments: JSON.stringify(spec.arguments ?? {}),
    "arguments digest": spec.argsDigest,
    "summary digest": spec.summaryDigest,
    asked: timeText(createTime),
    expires: timeText(expireTime),
  };
  return Object.entries(facts)
    .filter(([, text]) => text !== "")
    .map(([name, text]) => `${style.dim(`${name}:`)} ${visibleLine(text)}`)
    .join("\n");
}

function decidedLines({ status }: Approval): string[] {
  if (status === undefined || status.decidedBy === "") return [];
  const who = `${enumName(ApprovalStateSchema, status.state)} by ${namedId(status.decidedByName, status.decidedBy)} at ${timeText(status.decideTime)}, from ${status.channel}`;
  return [visibleLine(who), ...(status.comment === "" ? [] : [`comment: ${visibleLine(status.comment)}`])];
}
