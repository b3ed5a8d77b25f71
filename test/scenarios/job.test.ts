import { setTimeout as sleep } from "node:timers/promises";
import { create } from "@bufbuild/protobuf";
import { afterAll, beforeAll, expect, test } from "vitest";
import { callTool } from "../../client/call-tool.ts";
import { type CompleteCall, completeCall } from "../../client/complete-call.ts";
import { type RegistryClient, registryClient } from "../../client/registry.ts";
import { CallState } from "../../gen/ts/reeve/call/v1/call_pb.ts";
import { CallToolsRequestSchema, type OutputGap } from "../../gen/ts/reeve/call/v1/call_service_pb.ts";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { OutputStream } from "../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import { reasonOf } from "../../lib/fault/fault.ts";
import { createServiceTransport, type ServiceTransport } from "../../lib/rpc-client/transport.ts";
import { approveCall } from "../../testkit/approvals.ts";
import { callerOf } from "../../testkit/clients.ts";
import { startTestStack, type TestStack } from "../../testkit/stack.ts";

let stack: TestStack;
let transports: ServiceTransport[];
let operator: RegistryClient;
let agent: RegistryClient;
beforeAll(async () => {
  stack = await startTestStack();
  transports = [stack.tokens.operator, stack.tokens.agent].map((token) =>
    createServiceTransport({ baseUrl: stack.registry.url, token, protocol: "grpc", pingTimeoutMs: 60_000 }),
  );
  [operator, agent] = transports.map(registryClient) as [RegistryClient, RegistryClient];
});
afterAll(async () => {
  for (const transport of transports) transport.close();
  await stack.close();
});

const MIB = 1024 * 1024;
/** A line of `seq` is nine digits and its end. */
const LINE_BYTES = 10;
const FIRST_LINE = 100_000_000;

/** How much the program prints whose reader is slow and is cut off, in MiB. The full size is `npm run stream:full`. */
const SIZE_MIB = Number(process.env.REEVE_STREAM_MIB ?? 32);

/** Starts a call and does not wait for it. */
async function detach(callId: string, argv: string[], timeoutMs = 3_600_000): Promise<void> {
  const { call } = await operator.callTool({
    callId,
    tool: "exec",
    params: { argv, timeout_ms: timeoutMs },
    noWait: true,
  });
  expect(call?.id).toBe(callId);
}

/** Reads a call's output from a chunk on, until `stop` says so or the call has ended. */
async function readFrom(
  callId: string,
  from: number,
  take: (data: Uint8Array) => Promise<void> | void,
  stop: () => boolean = () => false,
): Promise<{ next: number; end?: CompleteCall; gaps: OutputGap[] }> {
  const cut = new AbortController();
  let next = from;
  const gaps: OutputGap[] = [];
  try {
    for await (const { event } of operator.watchCall({ callId, outputFromSequence: from }, { signal: cut.signal })) {
      if (event?.event.case === "outputGap") gaps.push(event.event.value);
      if (event?.event.case === "output") {
        expect(event.event.value.sequence).toBeGreaterThanOrEqual(next);
        next = event.event.value.sequence + 1;
        await take(event.event.value.data);
      }
      if (event?.event.case === "call" && completeCall(event.event.value).status.state >= CallState.SUCCEEDED) {
        return { next, end: completeCall(event.event.value), gaps };
      }
      if (stop()) return { next, gaps };
    }
    throw new Error("the stream ended before the call");
  } finally {
    cut.abort();
  }
}

/** Takes the lines of `seq` and counts them; throws at the first byte that is missing or comes twice. */
function seqReader(from = FIRST_LINE) {
  let [next, rest, bytes] = [from, "", 0];
  return {
    take(data: Uint8Array): void {
      bytes += data.length;
      const text = rest + Buffer.from(data).toString();
      const cut = text.lastIndexOf("\n") + 1;
      const count = cut / LINE_BYTES;
      // The first and the last line of what came, and its length: no line between them can be missing.
      if (cut > 0) {
        expect(Number(text.slice(0, LINE_BYTES - 1))).toBe(next);
        expect(Number(text.slice(cut - LINE_BYTES, cut - 1))).toBe(next + count - 1);
      }
      next += count;
      rest = text.slice(cut);
    },
    get bytes() {
      return bytes;
    },
    get next() {
      return next;
    },
  };
}

test("a slow reader is cut off several times and goes on, and a late one gets all of it", {
  timeout: 3_600_000,
}, async () => {
  const lines = Math.floor((SIZE_MIB * MIB) / LINE_BYTES);
  await detach("job-large", ["seq", String(FIRST_LINE), String(FIRST_LINE + lines - 1)]);
  const reader = seqReader();
  const cuts = 5;
  let end: CompleteCall | undefined;
  let cutOff = 0;
  for (let next = 0; end === undefined; ) {
    const until = ((cutOff + 1) * lines * LINE_BYTES) / (cuts + 1);
    const read = await readFrom(
      "job-large",
      next,
      async (data) => {
        reader.take(data);
        if (reader.bytes < 2 * MIB) await sleep(5);
      },
      () => cutOff < cuts && reader.bytes >= until,
    );
    expect(read.gaps).toEqual([]);
    ({ next, end } = read);
    if (end === undefined) cutOff++;
  }
  expect(cutOff).toBe(cuts);
  expect(end.status.state).toBe(CallState.SUCCEEDED);
  expect([reader.bytes, reader.next]).toEqual([lines * LINE_BYTES, FIRST_LINE + lines]);

  const late = seqReader();
  const whole = await readFrom("job-large", 0, late.take);
  expect([late.bytes, late.next, whole.gaps]).toEqual([lines * LINE_BYTES, FIRST_LINE + lines, []]);
});

test("a caller's stream that is cut off goes on with what it missed", { timeout: 120_000 }, async () => {
  const lines = 200_000;
  const params = {
    argv: ["sh", "-c", `for i in 1 2 3 4; do seq ${FIRST_LINE} ${FIRST_LINE + lines - 1}; sleep 0.3; done`],
  };
  const read = async (from: number | undefined, take: (data: Uint8Array) => void, stop: () => boolean) => {
    const [cut, open] = [new AbortController(), Promise.withResolvers<void>()];
    async function* requests() {
      const call = {
        callId: "job-stream",
        tool: "exec",
        params,
        ...(from !== undefined && { outputFromSequence: from }),
      };
      yield create(CallToolsRequestSchema, { frames: [{ frame: { case: "call", value: call } }] });
      await open.promise;
    }
    let next = from ?? 0;
    try {
      for await (const { events } of operator.callTools(requests(), { signal: cut.signal })) {
        for (const { event } of events) {
          if (event.case === "output") {
            next = event.value.sequence + 1;
            take(event.value.data);
          }
          if (event.case === "call" && completeCall(event.value).status.state >= CallState.SUCCEEDED) return undefined;
        }
        if (stop()) return next;
      }
      throw new Error("the stream ended before the call");
    } finally {
      open.resolve();
      cut.abort();
    }
  };
  let bytes = 0;
  const take = (data: Uint8Array): void => {
    bytes += data.length;
  };
  const next = await read(undefined, take, () => bytes > lines * LINE_BYTES);
  await sleep(500);
  expect(await read(next, take, () => false)).toBeUndefined();
  expect(bytes).toBe(4 * lines * LINE_BYTES);
});

test("parts are read by number while the call runs, with both streams, and secrets across parts stay out", async () => {
  const secret = `ghp_${"aB3dE5gH7jK9mN1pQ2rS4tU6vW8xY0zZaB3d"}`;
  const script = `printf 'one ${secret.slice(0, 20)}'; sleep 0.6; printf '${secret.slice(20)} two\n'; echo err >&2; sleep 1; echo three`;
  await detach("job-parts", ["sh", "-c", script]);
  let [next, complete] = [0, false];
  const texts = { stdout: "", stderr: "" };
  for (; !complete; await sleep(100)) {
    const part = await operator.getCallOutput({ callId: "job-parts", fromSequence: next, maxBytes: 1 });
    for (const { stream, data } of part.chunks)
      texts[stream === OutputStream.STDERR ? "stderr" : "stdout"] += Buffer.from(data).toString();
    ({ nextSequence: next, complete } = part);
  }
  expect(texts).toEqual({ stdout: "one [redacted: github_token] two\nthree\n", stderr: "err\n" });
  const again = await operator.getCallOutput({ callId: "job-parts", fromSequence: next });
  expect([again.chunks, again.complete]).toEqual([[], true]);
});

test("a program that does not heed its end is killed, and its caller gets to know why", async () => {
  await detach("job-stubborn", ["sh", "-c", "trap '' TERM INT HUP; echo ready; while :; do sleep 1; done"]);
  await expect
    .poll(async () => (await operator.getCallOutput({ callId: "job-stubborn" }).catch(() => undefined))?.chunks.length)
    .toBe(1);
  const watched = readFrom("job-stubborn", 0, () => undefined);
  const { call } = await operator.cancelCall({ callId: "job-stubborn" });
  const canceled = { state: CallState.CANCELED, error: { reason: ErrorReason.CANCELED, metadata: { by: "caller" } } };
  expect(call?.status).toMatchObject(canceled);
  expect((await watched).end?.status).toMatchObject(canceled);
});

test("a model looks after its own jobs by tools, and sees no other's", { timeout: 60_000 }, async () => {
  const client = agent;
  const run = async (tool: string, params: Record<string, string | number | boolean>, by = client) =>
    (await callTool(by, { tool, params })).status;
  await detach("job-theirs", ["sh", "-c", "echo theirs; sleep 60"]);
  const started = await client.callTool({
    callId: "job-own",
    tool: "exec",
    params: { argv: ["sleep", "60"] },
    noWait: true,
  });
  const own = started.call?.id ?? "";
  await approveCall(callerOf(stack, stack.tokens.operator), own);
  await expect
    .poll(async () => (await run("job.list", { running: true })).output?.jobs)
    .toMatchObject([{ callId: own, state: "JOB_STATE_RUNNING" }]);
  expect(await run("job.status", { call_id: "job-theirs" })).toMatchObject({
    state: CallState.FAILED,
    error: { reason: ErrorReason.TARGET_NOT_FOUND },
  });
  expect((await run("job.output", { call_id: "job-theirs" })).error?.reason).toBe(ErrorReason.TARGET_NOT_FOUND);
  expect((await run("job.cancel", { call_id: "job-theirs" })).error?.reason).toBe(ErrorReason.TARGET_NOT_FOUND);
  await expect(client.getCallOutput({ callId: "job-theirs" }).catch(reasonOf)).resolves.toBe(ErrorReason.NOT_FOUND);

  const listed = (await run("job.list", { running: true }, operator)).output?.jobs as { callId: string }[];
  expect(listed.map(({ callId }) => callId).toSorted()).toEqual([own, "job-theirs"].toSorted());
  expect((await run("job.output", { call_id: "job-theirs", wait_ms: 5000 }, operator)).output).toMatchObject({
    output: [{ stderr: false, text: "theirs\n" }],
    complete: false,
  });

  expect((await run("job.cancel", { call_id: own })).output).toMatchObject({ state: "JOB_STATE_CANCELED" });
  expect((await client.getCall({ callId: own })).call?.status).toMatchObject({
    state: CallState.CANCELED,
    error: { reason: ErrorReason.CANCELED },
  });
  expect((await run("job.status", { call_id: own })).output).toMatchObject({ job: { state: "JOB_STATE_CANCELED" } });
  await operator.cancelCall({ callId: "job-theirs" });
});
