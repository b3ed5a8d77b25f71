import { type JsonValue, toJson } from "@bufbuild/protobuf";
import { isEnd } from "../../client/call-progress.ts";
import { type CompleteCall, completeCall } from "../../client/complete-call.ts";
import { mayReconnect, pause, RETRY_DELAYS_MS } from "../../client/retry.ts";
import { CallStateSchema } from "../../gen/ts/reeve/call/v1/call_pb.ts";
import { type CallEvent, CallEventSchema } from "../../gen/ts/reeve/call/v1/call_service_pb.ts";
import { OutputStream } from "../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import { enumName } from "../print/enum-name.ts";
import { visibleLine } from "../print/escape.ts";
import type { Session } from "../session.ts";
import type { OutputName } from "./live-output.ts";
import { callJson } from "./show-receipt.ts";

/** Something that happened to a watched call: for people, and as JSON. */
export type WatchedEvent =
  | { kind: "state" | "gap"; text: string; json: JsonValue }
  | { kind: "output"; stream: OutputName; text: string; json: JsonValue };

/**
 * Reports what happens to a call until it ends, its output from a chunk's number on. A stream that breaks is opened again where
 * it broke. The result is the call as it was last.
 */
export async function watchCall(
  { registry }: Pick<Session, "registry">,
  callId: string,
  from: number,
  onEvent: (event: WatchedEvent) => void,
): Promise<CompleteCall | undefined> {
  const decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() };
  let last: CompleteCall | undefined;
  let next = from;
  let failures = 0;
  const take = (event: CallEvent): void => {
    failures = 0;
    const json = (): JsonValue => toJson(CallEventSchema, event);
    if (event.event.case === "call") {
      const isNews = event.event.value.status?.state !== last?.status.state;
      last = completeCall(event.event.value);
      const error = last.status.errorMessage === "" ? "" : `: ${last.status.errorMessage}`;
      const text = visibleLine(`${last.id} ${enumName(CallStateSchema, last.status.state)}${error}`);
      if (isNews) onEvent({ kind: "state", text, json: { callId, call: callJson(last) } });
    } else if (event.event.case === "output") {
      const { stream, data, sequence } = event.event.value;
      next = sequence + 1;
      const name = stream === OutputStream.STDERR ? "stderr" : "stdout";
      const text = decoders[name].decode(data, { stream: true });
      onEvent({ kind: "output", stream: name, text, json: json() });
    } else if (event.event.case === "outputGap") {
      onEvent({ kind: "gap", text: visibleLine(event.event.value.message), json: json() });
    }
  };
  for (;;) {
    try {
      for await (const { event } of registry.watchCall({ callId, outputFromSequence: next }))
        if (event !== undefined) take(event);
      if (last !== undefined && isEnd(last.status.state)) return last;
    } catch (error: unknown) {
      // Where nothing came yet, an address or an id may be wrong.
      if (last === undefined || !mayReconnect(error) || failures >= RETRY_DELAYS_MS.length) throw error;
    }
    if (failures >= RETRY_DELAYS_MS.length) return last;
    await pause(RETRY_DELAYS_MS[failures++] ?? 0, new AbortController().signal);
  }
}
