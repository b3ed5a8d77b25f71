import { CallState, type CallStatus } from "../../gen/ts/reeve/call/v1/call_pb.ts";
import type { CallEvent } from "../../gen/ts/reeve/call/v1/call_service_pb.ts";
import { OutputStream } from "../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import { stateWord } from "../model-tools/call-facts.ts";

/** Sends a progress notification: a message, with a number that rises. */
export type Notify = (progress: number, message: string) => Promise<void>;

/** What a client receives while a call goes on. */
export interface ProgressReport {
  /** Takes how the call stands. */
  enter(status: CallStatus): void;
  /** Takes what happened. Of output the promise resolves when it was sent. */
  onEvent(event: CallEvent): Promise<void> | undefined;
  close(): void;
}

/** How often a client is notified that a call still waits or runs, in milliseconds: less than any client's time limit. */
const EVERY_MS = 10_000;

/** The most characters of output in one notification; a longer piece goes in several. */
const MAX_CHARS = 8_000;

/**
 * Reports a call's states and what its tool prints as it comes, and at least every 10 seconds that it goes on, so that a
 * client which counts its time limit from the last notification keeps waiting.
 */
export function createProgress(notify: Notify): ProgressReport {
  // One decoder a stream: a character may be split between two pieces.
  const decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() };
  let count = 0;
  let status = "running";
  const send = (message: string) => notify(++count, message).catch(() => undefined);
  const timer = setInterval(() => void send(status), EVERY_MS);
  const enter = ({ state, approval }: CallStatus): void => {
    const now = state === CallState.HELD ? `waiting for a person: approval ${approval?.id ?? ""}` : stateWord(state);
    if (now === status) return;
    status = now;
    void send(status);
  };
  return {
    enter,
    onEvent({ event }) {
      if (event.case === "call" && event.value.status !== undefined) enter(event.value.status);
      if (event.case !== "output") return undefined;
      const { stream, data } = event.value;
      const text = decoders[stream === OutputStream.STDERR ? "stderr" : "stdout"].decode(data, { stream: true });
      return text === "" ? undefined : sendText(text);
    },
    close: () => clearInterval(timer),
  };

  async function sendText(text: string): Promise<void> {
    for (let at = 0; at < text.length; at += MAX_CHARS) await send(text.slice(at, at + MAX_CHARS).toWellFormed());
  }
}
