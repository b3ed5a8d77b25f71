import { type ChildProcess, spawn } from "node:child_process";
import { EventEmitter, once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterEach, describe, expect, test, vi } from "vitest";
import { nodeEnv } from "../../testkit/node-env.ts";
import { markConnectionError } from "../server/connection-errors.ts";
import { FATAL_EXIT_CODE, guardProcess, isHarmless } from "./process-guard.ts";

/** An error as node makes it in an event of a connection. */
function nodeError(code: string, frames = ["TCP.onStreamRead (node:internal/stream_base_commons:216:20)"]): Error {
  const error = Object.assign(new Error(`read ${code}`), { code });
  error.stack = [`Error: read ${code}`, ...frames.map((frame) => `    at ${frame}`)].join("\n");
  return error;
}

describe("what is harmless", () => {
  test.each([
    "ECONNRESET",
    "EPIPE",
    "ERR_HTTP2_STREAM_ERROR",
    "ERR_HTTP2_SESSION_ERROR",
    "ERR_SSL_TLSV1_ALERT_UNKNOWN_CA",
    "HPE_INVALID_METHOD",
  ])("%s of an event that node made", (code) => {
    expect(isHarmless(nodeError(code), "uncaughtException")).toBe(true);
  });

  test("an error that is marked, and one that it caused", () => {
    const marked = new Error("aborted");
    markConnectionError(marked);
    for (const error of [marked, new Error("the body broke", { cause: marked })]) {
      expect(isHarmless(error, "uncaughtException")).toBe(true);
      expect(isHarmless(error, "unhandledRejection")).toBe(true);
    }
  });

  test.each([
    ["a rejection, whatever its code", nodeError("ECONNRESET"), "unhandledRejection"],
    ["an error of a file", nodeError("ENOSPC"), "uncaughtException"],
    [
      "a reset that code of the program threw",
      nodeError("ECONNRESET", ["renew (file:///reeve/lib/lease.ts:10:3)", "processTicks (node:internal/process:1:1)"]),
      "uncaughtException",
    ],
    ["a mistake", new TypeError("x is not a function"), "uncaughtException"],
    ["no error at all", undefined, "unhandledRejection"],
  ] as const)("not %s", (_name, error, origin) => {
    expect(isHarmless(error, origin)).toBe(false);
  });

  test("not an error whose causes form a ring", () => {
    const ring = new Error("ring");
    ring.cause = ring;
    expect(isHarmless(ring, "uncaughtException")).toBe(false);
  });
});

test("an error while the process ends changes nothing about its end", async () => {
  const onFatal = vi.fn();
  const exit = vi.fn();
  const process = Object.assign(new EventEmitter(), { exit });
  const guard = guardProcess({ process, onFatal, onConnectionError: () => undefined });
  const { promise, resolve } = Promise.withResolvers<void>();
  const close = vi.fn(() => promise);
  guard.protect({ close });
  process.emit("uncaughtException", new Error("first"));
  process.emit("unhandledRejection", new Error("second"));
  expect(exit).not.toHaveBeenCalled();
  resolve();
  await vi.waitFor(() => expect(exit).toHaveBeenCalledWith(FATAL_EXIT_CODE));
  expect([onFatal.mock.calls.length, close.mock.calls.length]).toEqual([1, 1]);
  guard.remove();
  expect(process.eventNames()).toEqual([]);
});

describe("a process", () => {
  let child: ChildProcess | undefined;
  afterEach(() => void child?.kill("SIGKILL"));

  async function start() {
    const program = join(import.meta.dirname, "testdata", "guarded-process.ts");
    const started = spawn(process.execPath, [program], { env: nodeEnv(), stdio: "pipe" });
    child = started;
    const exited = once(started, "exit");
    let log = "";
    started.stderr.on("data", (chunk: Buffer) => {
      log += chunk;
    });
    const lines = createInterface({ input: started.stdout })[Symbol.asyncIterator]();
    const next = async (): Promise<string> => String((await lines.next()).value);
    const port = await next();
    const say = (word: string) => started.stdin.write(`${word}\n`);
    const ask = () => fetch(`http://127.0.0.1:${port}/slow`);
    return { say, next, ask, exited, logged: () => log, stop: () => started.kill("SIGTERM") };
  }

  test.each(["reset", "marked"])("goes on after %s, and says so", async (word) => {
    const guarded = await start();
    guarded.say(word);
    expect(await guarded.next()).toBe(`after ${word}`);
    const answer = await guarded.ask();
    guarded.stop();
    expect(await answer.text()).toBe("begun,done");
    expect(await guarded.exited).toEqual([0, null]);
    expect(guarded.logged()).toContain("connection failed with nothing waiting for it");
  });

  test.each(["throw", "reject", "loop"])("ends after %s, with what was under way finished", async (word) => {
    const guarded = await start();
    const answer = await guarded.ask();
    guarded.say(word);
    expect(await answer.text()).toBe("begun,done");
    expect(await guarded.exited).toEqual([FATAL_EXIT_CODE, null]);
    expect(guarded.logged()).toMatch(/"level":"fatal".*process ends after an error that nothing caught/);
    expect(guarded.logged()).toContain("reeve: ended after an unexpected error: ");
  });

  test("ends also where what runs does not close", async () => {
    const guarded = await start();
    guarded.say("stuck");
    await guarded.next();
    guarded.say("throw");
    expect(await guarded.exited).toEqual([FATAL_EXIT_CODE, null]);
  });
});
