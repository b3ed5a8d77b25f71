import { expect, test } from "vitest";
import type { ExecutionOutput } from "../../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import { OutputStream } from "../../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import { MAX_CHUNK_BYTES } from "../output/chunk-source.ts";
import type { OutputRecorder, Outputs } from "../output/outputs.ts";
import { createRecording } from "../output/recording.ts";
import { createLiveOutput, type LiveOutput, MAX_WAITING_BYTES } from "./live-output.ts";
import type { Watcher } from "./watcher.ts";

/** A watcher whose link takes output only when it is opened. */
function createTestWatcher() {
  const got: ExecutionOutput[] = [];
  const gate = Promise.withResolvers<void>();
  let isOpen = false;
  let isFollowing = true;
  const watcher: Watcher = {
    output: (output) => got.push(output),
    follows: () => isFollowing,
    room: () => (isOpen ? undefined : gate.promise),
    finished: () => undefined,
    lost: () => undefined,
  };
  return {
    watcher,
    got,
    open() {
      isOpen = true;
      gate.resolve();
    },
    leave() {
      isFollowing = false;
      gate.resolve();
    },
    text: () => got.map(({ data }) => Buffer.from(data).toString()).join(""),
  };
}

/** Records in memory, without a limit. */
const outputs: Pick<Outputs, "record"> = {
  record(_, listener) {
    const recording = createRecording({
      ...listener,
      reserve: () => true,
      createFile: () => new Promise(() => undefined),
      onError: () => undefined,
    });
    return { push: recording.push, end: recording.end, close: () => undefined } as unknown as OutputRecorder;
  },
};

function liveOutput(watchers: ReadonlySet<Watcher>): LiveOutput {
  return createLiveOutput("call-1", watchers, outputs);
}

test("numbers chunks in the order they were printed, across both streams", async () => {
  const slow = createTestWatcher();
  slow.open();
  const live = liveOutput(new Set([slow.watcher]));
  void live.push("stdout", Buffer.from("a"));
  void live.push("stderr", Buffer.from("b"));
  void live.push("stdout", Buffer.from("c"));
  live.end();
  expect(slow.got.map(({ sequence }) => sequence)).toEqual([0, 1, 2]);
  expect(slow.got.map(({ stream }) => stream)).toEqual([OutputStream.STDOUT, OutputStream.STDERR, OutputStream.STDOUT]);
  expect(slow.text()).toBe("abc");
});

test("splits what is larger than a chunk may be", () => {
  const slow = createTestWatcher();
  const live = liveOutput(new Set([slow.watcher]));
  void live.push("stdout", Buffer.alloc(MAX_CHUNK_BYTES * 2 + 1, "x"));
  live.end();
  expect(slow.got.map(({ data }) => data.length)).toEqual([MAX_CHUNK_BYTES, MAX_CHUNK_BYTES, 1]);
});

test("waits while the link has no room, and sends all before the end", async () => {
  const slow = createTestWatcher();
  const live = liveOutput(new Set([slow.watcher]));
  void live.push("stdout", Buffer.from("first"));
  await Promise.resolve();
  expect(slow.got).toEqual([]);
  live.end();
  expect(slow.text()).toBe("first");
});

test("does not send what does not fit, as the numbers show, and sends the last chunk in any case", async () => {
  const slow = createTestWatcher();
  const live = liveOutput(new Set([slow.watcher]));
  void live.push("stdout", Buffer.alloc(MAX_WAITING_BYTES, "x"));
  void live.push("stdout", Buffer.from("not sent"));
  void live.push("stderr", Buffer.from("last"));
  live.end();
  const sent = MAX_WAITING_BYTES / MAX_CHUNK_BYTES;
  expect(slow.got.map(({ sequence }) => sequence)).toEqual([...Array.from({ length: sent }, (_, at) => at), sent + 1]);
  expect(slow.text().slice(MAX_WAITING_BYTES)).toBe("last");
});

test("asks for a pause until the slowest follower has room", async () => {
  const [fast, slow] = [createTestWatcher(), createTestWatcher()];
  fast.open();
  const live = liveOutput(new Set([fast.watcher, slow.watcher]));
  let isPaused = true;
  const pause = live.push("stdout", Buffer.from("one"))?.then(() => {
    isPaused = false;
  });
  await new Promise(setImmediate);
  expect([isPaused, fast.text(), slow.text()]).toEqual([true, "", ""]);
  slow.open();
  await pause;
  expect([fast.text(), slow.text()]).toEqual(["one", "one"]);
  expect(live.push("stdout", Buffer.from("two"))).toBeUndefined();
  expect([fast.text(), slow.text()]).toEqual(["onetwo", "onetwo"]);
});

test("holds nothing up for one who stops following, and the numbers say what the next one missed", async () => {
  const [slow, next] = [createTestWatcher(), createTestWatcher()];
  slow.open();
  const watchers = new Set([slow.watcher]);
  const live = liveOutput(watchers);
  void live.push("stdout", Buffer.from("seen"));
  slow.leave();
  expect(live.push("stdout", Buffer.alloc(MAX_CHUNK_BYTES, "m"))).toBeUndefined();
  next.open();
  watchers.add(next.watcher);
  void live.push("stdout", Buffer.from("seen"));
  live.end();
  expect([slow.text(), next.text()]).toEqual(["seen", "seen"]);
  expect(next.got.map(({ sequence }) => sequence)).toEqual([2]);
});

test("a pause ends when the follower that it is for leaves", async () => {
  const slow = createTestWatcher();
  const live = liveOutput(new Set([slow.watcher]));
  const pause = live.push("stdout", Buffer.from("unread"));
  slow.leave();
  await pause;
  expect(slow.text()).toBe("");
});

test("goes on without watchers", () => {
  const live = liveOutput(new Set());
  void live.push("stdout", Buffer.from("unread"));
  live.end();
});
