import { type JsonValue, toJson } from "@bufbuild/protobuf";
import { type CompleteCall, completeCall } from "../../client/complete-call.ts";
import { CallStateSchema } from "../../gen/ts/reeve/call/v1/call_pb.ts";
import { CallEventSchema } from "../../gen/ts/reeve/call/v1/call_service_pb.ts";
import { OutputStream } from "../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import { enumName } from "../print/enum-name.ts";
import { visibleLine } from "../print/escape.ts";
import type { Session } from "../session.ts";
import type { OutputName } from "./live-output.ts";
import { callJson } from "./show-receipt.ts";

/** Something that happened to a watched call: for people, and as JSON. */
export type WatchedEvent =
  | { kind: "state"; text: string; json: JsonValue }
  | { kind: "output"; stream: OutputName; text: string; json: JsonValue };

/** Reports what happens to a call until it ends. The result is the call as it was last. */
export async function watchCall(
  { registry }: Pick<Session, "registry">,
  callId: string,
  onEvent: (event: WatchedEvent) => void,
): Promise<CompleteCall | undefined> {
  const decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() };
  let last: CompleteCall | undefined;
  for await (const { event } of registry.watchCall({ callId })) {
    if (event?.event.case === "call") {
      last = completeCall(event.event.value);
      const error = last.status.errorMessage === "" ? "" : `: ${last.status.errorMessage}`;
      const text = visibleLine(`${last.id} ${enumName(CallStateSchema, last.status.state)}${error}`);
      onEvent({ kind: "state", text, json: { callId, call: callJson(last) } });
    } else if (event?.event.case === "output") {
      const { stream, data } = event.event.value;
      const name = stream === OutputStream.STDERR ? "stderr" : "stdout";
      const text = decoders[name].decode(data, { stream: true });
      onEvent({ kind: "output", stream: name, text, json: toJson(CallEventSchema, event) });
    }
  }
  return last;
}
