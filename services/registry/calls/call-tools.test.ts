import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { CallState } from "../../../gen/ts/reeve/call/v1/call_pb.ts";
import { CallToolsRequestSchema } from "../../../gen/ts/reeve/call/v1/call_service_pb.ts";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { Role } from "../../../gen/ts/reeve/options/v1/access_pb.ts";
import type { Principal } from "../../../lib/auth/principal.ts";
import { fault, faultDetail } from "../../../lib/fault/fault.ts";
import { CommitUnknown, DatabaseUnreachable } from "../../../lib/store/postgres-errors.ts";
import { testCall } from "../../../testkit/test-call.ts";
import { callTools } from "./call-tools.ts";
import type { Calls, EndedCall } from "./calls.ts";
import { cancelCall } from "./cancel-call.ts";
import { createLiveCall, type LiveCall } from "./live-call.ts";
import { waitUntilSettled } from "./wait-until-settled.ts";

const PRINCIPAL: Principal = { id: "op", kind: "operator", roles: [Role.OPERATOR], name: "op" };

/** A stream with one call, for which the gate answers as it is set to. */
function streamOf(begin: () => Promise<LiveCall | EndedCall>, signal = new AbortController().signal) {
  const requests = (async function* () {
    const value = { callId: "c", tool: "exec" };
    yield create(CallToolsRequestSchema, { frames: [{ frame: { case: "call", value } }] });
  })();
  const outputOf = () => ({ read: () => Promise.reject(new Error("no device is asked")) });
  return callTools({ begin, outputOf } as unknown as Calls, requests, PRINCIPAL, signal);
}

const callIn = (state: CallState) => testCall({ id: "c", state });

test("refuses what never became a call", async () => {
  const events = [];
  const refused = () => Promise.reject(fault(ErrorReason.UNKNOWN_TOOL, { tool: "exec" }));
  for await (const batch of streamOf(refused)) events.push(...batch.events);
  expect(events).toMatchObject([{ callId: "c", event: { case: "refusal" } }]);
});

test("ends with an error, and no refusal, when a call that was written down is interrupted", async () => {
  const live = createLiveCall(callIn(CallState.DISPATCHED), new Uint8Array(), undefined);
  const next = streamOf(() => Promise.resolve(live)).next();
  live.interrupt(new Error("the disk is full"));
  const error = await next.catch((e: unknown) => e);
  expect(faultDetail(error)).toMatchObject({ reason: ErrorReason.INTERRUPTED, metadata: { call_id: "c" } });
});

test("ends with an error for a call that was interrupted before, since its end cannot be reported", async () => {
  const call = callIn(CallState.DISPATCHED);
  const next = streamOf(() => Promise.resolve({ call, ended: Promise.resolve(call) })).next();
  const error = await next.catch((e: unknown) => e);
  expect(faultDetail(error)?.reason).toBe(ErrorReason.INTERRUPTED);
});

test("ends the wait for the decision about a call that was interrupted", async () => {
  const live = createLiveCall(callIn(CallState.RECEIVED), new Uint8Array(), undefined);
  live.interrupt(new Error("the disk is full"));
  await expect(live.decided).resolves.toBeUndefined();
  await expect(live.ended).rejects.toThrow("the disk is full");
});

test("refuses a call that could not be written down, and invites to try again", async () => {
  const events = [];
  const unreachable = () => Promise.reject(new DatabaseUnreachable("unreachable"));
  for await (const batch of streamOf(unreachable)) events.push(...batch.events);
  expect(events).toMatchObject([{ event: { case: "refusal", value: { error: { reason: ErrorReason.NOT_READY } } } }]);
});

test("does not refuse a call where it is not known whether it was written down", async () => {
  const error = await streamOf(() => Promise.reject(new CommitUnknown("lost")))
    .next()
    .catch((e: unknown) => e);
  expect(faultDetail(error)?.reason).toBe(ErrorReason.INTERRUPTED);
});

test("rejects the wait until a call is settled when the call is interrupted", async () => {
  const live = createLiveCall(callIn(CallState.DISPATCHED), new Uint8Array(), undefined);
  const rest = waitUntilSettled(live, { waitMs: 1000, signal: new AbortController().signal });
  live.interrupt(new DatabaseUnreachable("unreachable"));
  const error = await rest.catch((e: unknown) => e);
  expect(faultDetail(error)).toMatchObject({ reason: ErrorReason.INTERRUPTED, metadata: { call_id: "c" } });
});

test("keeps nothing of a caller that has left while its call waits", async () => {
  const live = createLiveCall(callIn(CallState.HELD), new Uint8Array(), undefined);
  let watchers = 0;
  const watched: LiveCall = {
    ...live,
    watch(watcher) {
      watchers++;
      const unwatch = live.watch(watcher);
      return () => {
        unwatch();
        watchers--;
      };
    },
  };
  const caller = new AbortController();
  const stream = streamOf(() => Promise.resolve(watched), caller.signal);
  await stream.next();
  expect(watchers).toBe(1);
  caller.abort();
  expect(await stream.next()).toMatchObject({ done: true });
  expect(watchers).toBe(0);
});

test("rejects a cancel when the call is interrupted, and waits no longer", async () => {
  const live = createLiveCall(callIn(CallState.DISPATCHED), new Uint8Array(), undefined);
  const find = () => Promise.resolve(live);
  const timers = () => process.getActiveResourcesInfo().filter((kind) => kind === "Timeout").length;
  const before = timers();
  const canceled = cancelCall({ find } as unknown as Calls, "c", PRINCIPAL);
  live.canceled.signal.addEventListener("abort", () => live.interrupt(new DatabaseUnreachable("unreachable")));
  const error = await canceled.catch((e: unknown) => e);
  expect(faultDetail(error)).toMatchObject({ reason: ErrorReason.INTERRUPTED, metadata: { call_id: "c" } });
  expect(timers()).toBe(before);
});
