import { expect, test } from "vitest";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { reasonOf } from "../../../lib/fault/fault.ts";
import type { ServiceTransport } from "../../../lib/serve/client.ts";
import { openAttachSession } from "./attach-session.ts";

/** A registry that never answers. */
const mute = {
  stream: (_method, signal) =>
    new Promise((_, reject) => {
      signal?.addEventListener("abort", () => reject(signal.reason), { once: true });
    }),
  unary: () => Promise.reject(new Error("not asked for")),
  close: () => undefined,
} satisfies ServiceTransport;

function dial(connect: (onConnected: () => void) => ServiceTransport) {
  return openAttachSession({
    // A device that has nothing to say.
    async *end(commands) {
      for await (const _ of commands) yield* [];
    },
    connect,
    heartbeatMs: 1000,
    answerMs: 80,
    draining: new AbortController().signal,
    onAnswer: () => undefined,
  });
}

test("gives up where nobody is there, and has patience with a registry that is there and busy", async () => {
  const busy = dial((onConnected) => {
    onConnected();
    return mute;
  });
  let isBusyLeft = false;
  void busy.ended.then(() => {
    isBusyLeft = true;
  });
  expect(reasonOf(await dial(() => mute).ended)).toBe(ErrorReason.NOT_READY);
  // One more that was dialled later has given up as well by then.
  await dial(() => mute).ended;
  expect(isBusyLeft).toBe(false);
  busy.abort();
  await busy.ended;
});
