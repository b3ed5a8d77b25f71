import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { create } from "@bufbuild/protobuf";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type CompleteCall, completeCall } from "../../client/complete-call.ts";
import { type RegistryClient, registryClient } from "../../client/registry.ts";
import { CallState } from "../../gen/ts/reeve/call/v1/call_pb.ts";
import { CallToolsRequestSchema } from "../../gen/ts/reeve/call/v1/call_service_pb.ts";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { createServiceTransport, type ServiceTransport } from "../../lib/rpc-client/transport.ts";
import { startTestStack, type TestStack } from "../../testkit/stack.ts";

let stack: TestStack;
let transport: ServiceTransport;
let operator: RegistryClient;
beforeAll(async () => {
  stack = await startTestStack();
  transport = createServiceTransport({
    baseUrl: stack.registry.url,
    token: stack.tokens.operator,
    protocol: "grpc",
    pingTimeoutMs: 60_000,
  });
  operator = registryClient(transport);
});
afterAll(async () => {
  transport.close();
  await stack.close();
});

const MIB = 1024 * 1024;
/** A line of `seq` is nine digits and its end. */
const LINE_BYTES = 10;
const FIRST_LINE = 100_000_000;

/** A caller's stream with one program on it, whose output is pulled batch by batch: what is not pulled is not read. */
async function* outputOf(callId: string, argv: string[], timeoutMs: number, left = new AbortController().signal) {
  const open = Promise.withResolvers<void>();
  async function* requests() {
    const call = { callId, tool: "exec", params: { argv, timeout_ms: timeoutMs } };
    yield create(CallToolsRequestSchema, { frames: [{ frame: { case: "call", value: call } }] });
    await open.promise;
  }
  try {
    for await (const { events } of operator.callTools(requests(), { signal: left })) {
      for (const { event } of events) {
        if (event.case === "refusal") throw new Error(event.value.message);
        if (event.case === "output") yield Buffer.from(event.value.data);
        else if (event.case === "call" && completeCall(event.value).status.state >= CallState.SUCCEEDED)
          return completeCall(event.value);
      }
    }
    throw new Error("the stream ended before the call");
  } finally {
    open.resolve();
  }
}

test("a fast program with a slow reader loses nothing, and nothing piles up", { timeout: 300_000 }, async () => {
  const lines = 10_500_000;
  const script = `echo $$; exec seq ${FIRST_LINE} ${FIRST_LINE + lines - 1}`;
  const output = outputOf("live-slow", ["sh", "-c", script], 280_000);
  let [next, bytes] = [FIRST_LINE, 0];
  const [pid = "", first = ""] = ((await output.next()).value as Buffer).toString().split(/(?<=^\d+\n)/);
  let rest = first;
  let end: CompleteCall | undefined;
  for (let pulls = 0; end === undefined; pulls++) {
    if (pulls === 5) {
      await sleep(2000);
      // What lies between the program and its reader: windows and pipes, whatever the program could print meanwhile.
      expect((await printedBy(pid.trim())) - bytes).toBeLessThan(4 * MIB);
    }
    const step = await output.next();
    if (step.done === true) {
      end = step.value;
      break;
    }
    // Each chunk goes on where the one before it ended.
    const text = rest + step.value.toString();
    const cut = text.lastIndexOf("\n") + 1;
    if (cut > 0) expect(Number(text.slice(0, LINE_BYTES - 1))).toBe(next);
    next += cut / LINE_BYTES;
    bytes += cut;
    rest = text.slice(cut);
    await sleep(bytes < 2 * MIB ? 20 : 0);
  }
  expect(end).toMatchObject({ status: { state: CallState.SUCCEEDED, output: { truncated: true } } });
  expect([bytes, next, rest]).toEqual([lines * LINE_BYTES, FIRST_LINE + lines, ""]);
});

/** How many bytes a program has written so far (proc(5)). */
async function printedBy(pid: string): Promise<number> {
  const text = await readFile(`/proc/${pid}/io`, "utf8");
  return Number(/^wchar: (\d+)$/m.exec(text)?.[1]);
}

const ENDLESS = ["yes", "0123456789"];

test("a program that waits for its reader is killed when its time is up", async () => {
  const output = outputOf("live-timeout", ENDLESS, 1500);
  expect((await output.next()).value).toBeInstanceOf(Buffer);
  const timedOut = { status: { state: CallState.TIMED_OUT, error: { reason: ErrorReason.TIMED_OUT } } };
  await expect.poll(async () => (await operator.getCall({ callId: "live-timeout" })).call).toMatchObject(timedOut);
  await output.return(undefined as never);
});

test("a program that waits for its reader can be canceled", async () => {
  const output = outputOf("live-cancel", ENDLESS, 60_000);
  expect((await output.next()).value).toBeInstanceOf(Buffer);
  await sleep(500);
  const { call } = await operator.cancelCall({ callId: "live-cancel" });
  expect(call).toMatchObject({ status: { state: CallState.CANCELED, error: { reason: ErrorReason.CANCELED } } });
  await output.return(undefined as never);
});

test("a program goes on at its own pace when the reader that it waits for leaves", async () => {
  const left = new AbortController();
  const argv = ["seq", String(FIRST_LINE), String(FIRST_LINE + 2_000_000)];
  const output = outputOf("live-left", argv, 60_000, left.signal);
  expect((await output.next()).value).toBeInstanceOf(Buffer);
  await sleep(500);
  expect((await operator.getCall({ callId: "live-left" })).call?.status?.state).toBe(CallState.DISPATCHED);
  left.abort();
  // What had arrived by then may still come out, in any number of chunks.
  await expect(Array.fromAsync(output)).rejects.toThrow();
  await expect
    .poll(async () => (await operator.getCall({ callId: "live-left" })).call?.status?.state)
    .toBe(CallState.SUCCEEDED);
});

test("one who follows another's call holds its program back, too, and loses nothing", async () => {
  const lines = 1_000_000;
  // It prints once a caller follows: by then, nothing of it can have been missed.
  const followed = join(stack.workFolder, "followed");
  const script = `until [ -e ${followed} ]; do sleep 0.1; done; exec seq ${FIRST_LINE} ${FIRST_LINE + lines - 1}`;
  const ended = operator.callTool({ callId: "live-watch", tool: "exec", params: { argv: ["sh", "-c", script] } });
  let bytes = 0;
  await expect
    .poll(async () => (await operator.getCall({ callId: "live-watch" }).catch(() => undefined))?.call?.status?.state)
    .toBe(CallState.DISPATCHED);
  for await (const { event } of operator.watchCall({ callId: "live-watch" })) {
    if (bytes === 0) await writeFile(followed, "");
    if (event?.event.case === "output") bytes += event.event.value.data.length;
    await sleep(1);
  }
  expect((await ended).call?.status?.state).toBe(CallState.SUCCEEDED);
  expect(bytes).toBe(lines * LINE_BYTES);
});
