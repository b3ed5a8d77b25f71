import { setTimeout as sleep } from "node:timers/promises";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import type { Matrix, MatrixSendRequest, MatrixSendResponseSchema } from "../../../gen/ts/reeve/tools/v1/matrix_pb.ts";
import { fault, reasonOf } from "../../../lib/fault/fault.ts";
import { sha256Hex } from "../../../lib/sign/canonical.ts";
import type { ConnectOptions } from "./http/options.ts";
import { parseUrl } from "./http/request.ts";
import { type Answer, isEncrypted, type OutgoingRequest, send } from "./http/send.ts";
import { throwIfAborted } from "./outcome.ts";
import type { ToolContext, ToolFamily } from "./tool.ts";

/** A homeserver's answers are short. */
const MAX_ANSWER = 65_536;

/** Between two tries, where the homeserver does not say: doubled each time, up to the second. */
const WAIT_MS = { first: 500, most: 8_000 };

/** Messages to Matrix rooms, by the client-server API. */
export function createMatrixTools(options: ConnectOptions = {}): ToolFamily<typeof Matrix> {
  return { send: (input, context) => sendMessage(options, input, context) };
}

async function sendMessage(
  options: ConnectOptions,
  input: MatrixSendRequest,
  context: ToolContext,
): Promise<MessageInitShape<typeof MatrixSendResponseSchema>> {
  const request = requestFor(input, context);
  for (let tries = 1, waitMs = WAIT_MS.first; ; tries++, waitMs = Math.min(2 * waitMs, WAIT_MS.most)) {
    const answer = await tryOnce(context, request, options);
    if (answer?.status === 200) return { eventId: eventIdOf(answer), tries };
    if (answer !== undefined && answer.status !== 429 && answer.status < 500) throw refused(answer);
    // The call's deadline ends this.
    await sleep(askedToWait(answer) ?? waitMs, undefined, { signal: context.signal }).catch(() => undefined);
    throwIfAborted(context);
  }
}

/**
 * The request of a call, the same at each try: its transaction id comes from the call's id, and a homeserver that has it already
 * sends nothing again.
 */
function requestFor(input: MatrixSendRequest, context: ToolContext): OutgoingRequest {
  const { homeserver, accessToken, roomId, text, html, notice } = input;
  const base = parseUrl(homeserver, "homeserver");
  const transaction = `reeve-${sha256Hex(context.callId).slice(0, 32)}`;
  const path = `/_matrix/client/v3/rooms/${encodeURIComponent(roomId)}/send/m.room.message/${transaction}`;
  const use = { field: "accessToken", host: base.hostname, isEncrypted: isEncrypted(base) };
  const formatted = html === "" ? {} : { format: "org.matrix.custom.html", formatted_body: html };
  return {
    url: new URL(path, base),
    field: "homeserver",
    method: "PUT",
    headers: {
      "content-type": "application/json",
      authorization: `Bearer ${context.secrets.resolve(accessToken, use).trim()}`,
    },
    body: JSON.stringify({ msgtype: notice ? "m.notice" : "m.text", body: text, ...formatted }),
    maxBytes: MAX_ANSWER,
  };
}

/** Undefined where the exchange failed: the message may have been sent all the same. */
async function tryOnce(
  context: ToolContext,
  request: OutgoingRequest,
  options: ConnectOptions,
): Promise<Answer | undefined> {
  try {
    return await send(context, request, options);
  } catch (error: unknown) {
    if (reasonOf(error) !== ErrorReason.TOOL_FAILED) throw error;
    return undefined;
  }
}

function askedToWait(answer: Answer | undefined): number | undefined {
  const { retry_after_ms: ms } = jsonOf(answer);
  const seconds = Number(answer?.headers["retry-after"] ?? Number.NaN);
  const asked = typeof ms === "number" ? ms : seconds * 1000;
  return asked >= 0 ? asked : undefined;
}

function eventIdOf(answer: Answer): string {
  const { event_id: id } = jsonOf(answer);
  if (typeof id === "string") return id.slice(0, 255);
  throw fault(ErrorReason.TOOL_FAILED, { status: "200" }, { message: "the homeserver's answer names no event" });
}

function refused(answer: Answer): Error {
  const { errcode, error } = jsonOf(answer);
  const code = typeof errcode === "string" ? errcode.slice(0, 64) : "";
  const words = typeof error === "string" ? error.slice(0, 512) : "without a reason";
  const message = `the homeserver answered ${answer.status} ${code}: ${words}`;
  return fault(ErrorReason.TOOL_FAILED, { status: String(answer.status), errcode: code }, { message });
}

function jsonOf(answer: Answer | undefined): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(answer?.body.toString("utf8") ?? "");
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}
