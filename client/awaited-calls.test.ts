import { once } from "node:events";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { Code, ConnectError, createRouterTransport, type HandlerContext, type ServiceImpl } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { type CallSchema, CallState } from "../gen/ts/reeve/call/v1/call_pb.ts";
import { CallService } from "../gen/ts/reeve/call/v1/call_service_pb.ts";
import { ErrorReason } from "../gen/ts/reeve/common/v1/error_pb.ts";
import { type CallOptions, callTool } from "./call-tool.ts";
import { createError, reasonOf } from "./errors.ts";
import { registryClient } from "./registry.ts";

type Call = MessageInitShape<typeof CallSchema>;

const inState = (id: string, state: CallState): Call => ({ id, spec: {}, status: { state } });

/** Calls a registry with these RPCs, and returns the names of those that were used. */
async function called(impl: Partial<ServiceImpl<typeof CallService>>, options: CallOptions = {}) {
  const used: string[] = [];
  const watched = Object.fromEntries(
    Object.entries(impl).map(([name, rpc]) => [
      name,
      (...args: never[]) => {
        used.push(name);
        return (rpc as (...args: never[]) => unknown)(...args);
      },
    ]),
  );
  const client = registryClient(createRouterTransport((router) => void router.service(CallService, watched)));
  const result = await callTool(client, { tool: "exec", callId: "c-1" }, { retryDelaysMs: [1, 1], ...options }).catch(
    (error: unknown) => error,
  );
  return { used, result };
}

async function* untilItsCallerLeaves(_request: unknown, { signal }: HandlerContext) {
  yield {};
  await once(signal, "abort");
}

test("a call that nothing watches takes one RPC", async () => {
  const { used, result } = await called({
    callTool({ callId, noWait, approvalWait }) {
      expect({ noWait, approvalWait }).toMatchObject({ noWait: false, approvalWait: { seconds: 0n, nanos: 0 } });
      return { call: inState(callId, CallState.SUCCEEDED) };
    },
  });
  expect({ used, result }).toMatchObject({ used: ["callTool"], result: { status: { state: CallState.SUCCEEDED } } });
});

test("one that is held is watched until its end", async () => {
  const { used, result } = await called({
    callTool: ({ callId }) => ({ call: inState(callId, CallState.HELD) }),
    async *watchCall({ callId }) {
      yield { event: { callId, event: { case: "call", value: inState(callId, CallState.DENIED) } } };
    },
  });
  expect({ used, result }).toMatchObject({
    used: ["callTool", "watchCall"],
    result: { status: { state: CallState.DENIED } },
  });
});

test("one that stays held is returned when the wait is over", async () => {
  const { used, result } = await called(
    {
      callTool: ({ callId }) => ({ call: inState(callId, CallState.HELD) }),
      watchCall: untilItsCallerLeaves,
      getCall: ({ callId }) => ({ call: inState(callId, CallState.HELD) }),
    },
    { approvalWaitMs: 20 },
  );
  expect({ used, result }).toMatchObject({
    used: ["callTool", "watchCall", "getCall"],
    result: { status: { state: CallState.HELD } },
  });
});

test("one that is queued is returned at once", async () => {
  const { used, result } = await called({
    callTool: ({ callId }) => ({ call: inState(callId, CallState.QUEUED) }),
    watchCall: untilItsCallerLeaves,
  });
  expect(used[0]).toBe("callTool");
  expect(result).toMatchObject({ status: { state: CallState.QUEUED } });
});

test("one that is canceled is waited for", async () => {
  const stop = new AbortController();
  const ended = Promise.withResolvers<void>();
  const { used, result } = await called(
    {
      async callTool({ callId }) {
        stop.abort();
        await ended.promise;
        return { call: inState(callId, CallState.CANCELED) };
      },
      cancelCall({ callId }) {
        ended.resolve();
        return { call: inState(callId, CallState.DISPATCHED) };
      },
    },
    { signal: stop.signal },
  );
  expect({ used, result }).toMatchObject({
    used: ["callTool", "cancelCall"],
    result: { status: { state: CallState.CANCELED } },
  });
});

test("a connection that breaks has the call sent again under its id", async () => {
  let tries = 0;
  const { used, result } = await called({
    callTool({ callId }) {
      if (tries++ === 0) throw new ConnectError("gone", Code.Unavailable);
      return { call: inState(callId, CallState.SUCCEEDED) };
    },
  });
  expect({ used, result }).toMatchObject({
    used: ["callTool", "callTool"],
    result: { id: "c-1", status: { state: CallState.SUCCEEDED } },
  });
});

test("a refusal is what the call rejects with", async () => {
  const { used, result } = await called({
    callTool() {
      throw createError(ErrorReason.INVALID_INPUT, "no such field");
    },
  });
  expect(used).toEqual(["callTool"]);
  expect(reasonOf(result)).toBe(ErrorReason.INVALID_INPUT);
});
