import { create } from "@bufbuild/protobuf";
import { createRouterTransport } from "@connectrpc/connect";
import { afterEach, expect, it } from "vitest";
import { registryClient } from "../../../client/registry.ts";
import { CallSchema, CallState } from "../../../gen/ts/reeve/call/v1/call_pb.ts";
import { CallService } from "../../../gen/ts/reeve/call/v1/call_service_pb.ts";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { fault } from "../../../lib/fault/fault.ts";
import { type CallEnds, createCallEnds } from "./call-ends.ts";

let ends: CallEnds | undefined;
afterEach(() => ends?.close());

/** A registry whose streams each show one state of a call and break; NOT_FOUND after the last. */
function registryOf(states: readonly CallState[]) {
  const seen: string[] = [];
  const next = (how: string, id: string) => {
    const state = states[seen.length];
    seen.push(`${how} ${id}`);
    if (state === undefined) throw fault(ErrorReason.NOT_FOUND, {});
    return create(CallSchema, { id, status: { state } });
  };
  const transport = createRouterTransport(({ service }) => {
    service(CallService, {
      getCall: ({ callId }) => ({ call: next("get", callId) }),
      async *watchCall({ callId }) {
        yield { event: { callId, event: { case: "call", value: next("watch", callId) } } };
      },
    });
  });
  return { client: registryClient(transport), seen };
}

it("reports an end once, over streams that break", async () => {
  const { client, seen } = registryOf([CallState.HELD, CallState.DISPATCHED, CallState.SUCCEEDED]);
  const ended: string[] = [];
  ends = createCallEnds({ onEnd: (id) => ended.push(id) });
  ends.watch("a", client);
  ends.watch("a", client);
  await expect.poll(() => ended).toEqual(["a"]);
  expect(seen).toEqual(["watch a", "watch a", "watch a"]);
});

it("reports a call that the registry does not know, so that its run looks at it", async () => {
  const { client } = registryOf([]);
  const ended: string[] = [];
  ends = createCallEnds({ onEnd: (id) => ended.push(id) });
  ends.watch("gone", client);
  await expect.poll(() => ended).toEqual(["gone"]);
});

it("asks about calls for which there is no stream left", async () => {
  const { client, seen } = registryOf([CallState.HELD, CallState.SUCCEEDED]);
  const ended: string[] = [];
  ends = createCallEnds({ onEnd: (id) => ended.push(id), maxStreams: 0, askMs: 5 });
  ends.watch("b", client);
  await expect.poll(() => ended).toEqual(["b"]);
  expect(seen).toEqual(["get b", "get b"]);
});

it("follows the newest calls on streams, and asks about the one that has waited longest", async () => {
  const seen: string[] = [];
  const end = Promise.withResolvers<void>();
  const transport = createRouterTransport(({ service }) => {
    service(CallService, {
      async getCall({ callId }) {
        seen.push(`get ${callId}`);
        return { call: create(CallSchema, { id: callId, status: { state: CallState.SUCCEEDED } }) };
      },
      async *watchCall({ callId }, { signal }) {
        seen.push(`watch ${callId}`);
        const left = new Promise((resolve) => signal.addEventListener("abort", resolve));
        await (callId === "new" ? end.promise : left);
        if (signal.aborted) return;
        const call = create(CallSchema, { id: callId, status: { state: CallState.SUCCEEDED } });
        yield { event: { callId, event: { case: "call", value: call } } };
      },
    });
  });
  const client = registryClient(transport);
  const ended: string[] = [];
  ends = createCallEnds({ onEnd: (id) => ended.push(id), maxStreams: 1, askMs: 5 });
  ends.watch("old", client);
  await expect.poll(() => seen).toEqual(["watch old"]);
  ends.watch("new", client);
  await expect.poll(() => ended).toEqual(["old"]);
  expect(seen).toEqual(["watch old", "watch new", "get old"]);
  end.resolve();
  await expect.poll(() => ended).toEqual(["old", "new"]);
});
