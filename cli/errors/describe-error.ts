import type { JsonObject } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { type ErrorDetail, ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { ConfigError } from "../../lib/config/config.ts";
import { faultDetail, reasonName } from "../../lib/fault/fault.ts";
import { ManifestError } from "../../lib/owner-manifest/manifest-error.ts";
import { FolderInUse } from "../../lib/store/folder-in-use.ts";
import { IncompatibleDatabase } from "../../lib/store/incompatible-database.ts";
import { ExitCode, exitCodeOfReason } from "../exit-codes.ts";
import { visible, visibleLine } from "../print/escape.ts";
import { hintsFor } from "./hints.ts";
import { UsageError } from "./usage-error.ts";

/** An error as a person or a program sees it. */
export interface ErrorReport {
  /** The reason's short name, such as "policy_denied". */
  reason: string;
  message: string;
  /** What would help, a line each. */
  hints: readonly string[];
  metadata: Readonly<Record<string, string>>;
  violations: readonly { field: string; message: string }[];
  exitCode: number;
}

/** What to say about anything that was thrown, and what to end with. */
export function describeError(error: unknown): ErrorReport {
  if (error instanceof UsageError) return { ...BARE, reason: "usage", message: error.message, hints: error.hints };
  if (error instanceof ConfigError) return { ...BARE, reason: "usage", message: error.message, hints: [CONFIG_HINT] };
  if (error instanceof ManifestError)
    return { ...BARE, reason: "manifest_refused", message: error.message, exitCode: ExitCode.DENIED };
  if (error instanceof FolderInUse) {
    return { ...BARE, reason: "usage", message: error.message, hints: [folderHint(error.setting)] };
  }
  if (error instanceof IncompatibleDatabase) {
    return { ...BARE, reason: "usage", message: error.message, hints: [error.remedy, DATA_HINT] };
  }
  const detail = faultDetail(error);
  if (detail !== undefined) return describeDetail(detail, ConnectError.from(error).rawMessage);
  if (error instanceof ConnectError) return describeConnection(error);
  const message = error instanceof Error ? error.message : String(error);
  return { ...BARE, reason: "internal", message, hints: [DEBUG_HINT], exitCode: ExitCode.INTERNAL };
}

/** What to say about a typed error that did not come by being thrown, such as a call's. */
export function describeDetail(detail: ErrorDetail, message: string): ErrorReport {
  return {
    reason: reasonName(detail.reason),
    message: message === "" ? reasonName(detail.reason).replaceAll("_", " ") : message,
    hints: hintsFor(detail, message),
    metadata: detail.metadata,
    violations: detail.violations.map(({ field, message: what }) => ({ field, message: what })),
    exitCode: exitCodeOfReason(detail.reason),
  };
}

/** The lines for a terminal: what is wrong, then what is known about it. Ends with a newline. */
export function errorText(report: ErrorReport): string {
  const [first = "", ...rest] = visible(report.message).split("\n");
  const violations = report.violations.filter(({ message }) => !report.message.includes(message));
  return [
    `reeve: ${first}`,
    ...rest.map((line) => `  ${line}`),
    ...violations.map(({ field, message }) => `  ${visibleLine(field)}: ${visibleLine(message)}`),
    ...report.hints.map((hint) => `  ${visibleLine(hint)}`),
    "",
  ].join("\n");
}

/** The document for a program. */
export function errorJson({ reason, message, hints, metadata, violations, exitCode }: ErrorReport): JsonObject {
  return {
    error: {
      reason,
      message,
      metadata: { ...metadata },
      violations: violations.map((violation) => ({ ...violation })),
      hints: [...hints],
      exitCode,
    },
  };
}

const BARE: ErrorReport = {
  reason: "",
  message: "",
  hints: [],
  metadata: {},
  violations: [],
  exitCode: ExitCode.USAGE,
};

const folderHint = (setting: string) => `nothing was changed; stop it, or use another folder with ${setting}`;
const DATA_HINT =
  "`reeve up` keeps all of its data in REEVE_DATA_DIR: move all of that folder elsewhere, or name another one";
const CONFIG_HINT = "`reeve config show --docs` lists every setting";
const DEBUG_HINT = "set REEVE_DEBUG=1 to see where it comes from";

const UNREACHABLE: ReadonlySet<Code> = new Set([Code.Unavailable, Code.Canceled, Code.Aborted]);

/** An error without a reason comes from the connection, or from something that is no Reeve. */
function describeConnection(error: ConnectError): ErrorReport {
  if (UNREACHABLE.has(error.code)) {
    const socket = /(?:ENOENT|ECONNREFUSED|EACCES) (\/\S+\.sock)$/.exec(error.rawMessage)?.[1];
    if (socket !== undefined) {
      return {
        ...BARE,
        reason: reasonName(ErrorReason.NOT_READY),
        message: `Reeve is not running on this machine: nothing listens at ${socket}`,
        hints: ["`reeve up` starts it, and `reeve doctor` looks closer"],
        exitCode: ExitCode.UNREACHABLE,
      };
    }
    return {
      ...BARE,
      reason: reasonName(ErrorReason.NOT_READY),
      message: `the control plane cannot be reached: ${error.rawMessage}`,
      hints: ["is it running? `reeve up` starts one here, and `reeve doctor` looks closer"],
      exitCode: ExitCode.UNREACHABLE,
    };
  }
  if (error.code === Code.DeadlineExceeded) {
    return { ...BARE, reason: "timed_out", message: error.rawMessage, exitCode: ExitCode.TIMED_OUT };
  }
  // The transport wraps what a client threw, such as a UsageError of ours.
  if (error.cause instanceof UsageError) return describeError(error.cause);
  return { ...BARE, reason: "internal", message: error.message, hints: [DEBUG_HINT], exitCode: ExitCode.INTERNAL };
}
