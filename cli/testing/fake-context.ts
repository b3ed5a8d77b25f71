import { PassThrough } from "node:stream";
import type { CommandContext, Output } from "../command-context.ts";
import { runCli } from "../run-cli.ts";

/** What a fake context starts with. */
export interface FakeContextOptions {
  env?: Record<string, string | undefined>;
  /** Input, standard output and standard error are a terminal. Default false. */
  terminal?: boolean;
  /** What standard input holds; it ends after it. Default: it stays open on a terminal, and is empty elsewhere. */
  input?: string | Uint8Array;
}

/** A cost of passphrases at which a test does not wait for them. */
export const TEST_COST: number = 2 ** 10;

/** A context that keeps what is written, and can be typed into. */
export interface FakeContext extends CommandContext {
  /** What is written here is typed. */
  readonly stdin: PassThrough & { readonly isTTY: boolean };
  stdoutText(): string;
  stderrText(): string;
  /** Types a text, when standard error holds what it answers. */
  typeAfter(prompt: string, text: string): Promise<void>;
  /** Resolves when an output holds the text. */
  shown(where: "stdout" | "stderr", text: string): Promise<void>;
  /** The codes that `exitNow` was called with. */
  exits(): readonly number[];
}

interface Recorder extends Output {
  text(): string;
  holds(text: string): Promise<void>;
}

/** A context for tests. */
export function createFakeContext(options: FakeContextOptions = {}): FakeContext {
  const isTTY = options.terminal ?? false;
  const stdin = Object.assign(new PassThrough(), { isTTY });
  if (options.input !== undefined) stdin.end(options.input);
  else if (!isTTY) stdin.end();
  const [stdout, stderr] = [createRecorder(isTTY), createRecorder(isTTY)];
  const handlers = new Set<() => void>();
  const exits: number[] = [];
  return {
    env: options.env ?? {},
    stdin,
    stdout,
    stderr,
    passphraseCost: TEST_COST,
    now: Date.now,
    onInterrupt(handler) {
      handlers.add(handler);
      return () => handlers.delete(handler);
    },
    setExitCode: () => undefined,
    exitNow: (code) => exits.push(code),
    stdoutText: stdout.text,
    stderrText: stderr.text,
    shown: (where, text) => (where === "stdout" ? stdout : stderr).holds(text),
    async typeAfter(prompt, text) {
      await stderr.holds(prompt);
      stdin.write(text);
    },
    interrupt() {
      for (const handler of handlers) handler();
    },
    exits: () => exits,
  };
}

/** What a command line came to. */
export interface CliResult {
  code: number;
  stdout: string;
  stderr: string;
}

/** Runs a command line in a context of its own. */
export async function runInFake(argv: readonly string[], options: FakeContextOptions = {}): Promise<CliResult> {
  const context = createFakeContext(options);
  const code = await runCli(argv, context);
  return { code, stdout: context.stdoutText(), stderr: context.stderrText() };
}

function createRecorder(isTTY: boolean): Recorder {
  let written = "";
  const waiting = new Map<string, PromiseWithResolvers<void>>();
  return {
    isTTY,
    columns: 100,
    write(text) {
      written += typeof text === "string" ? text : Buffer.from(text).toString("utf8");
      for (const [wanted, { resolve }] of waiting) if (written.includes(wanted)) resolve();
    },
    text: () => written,
    holds(text) {
      if (written.includes(text)) return Promise.resolve();
      const found = waiting.get(text) ?? Promise.withResolvers<void>();
      waiting.set(text, found);
      return found.promise;
    },
  };
}
