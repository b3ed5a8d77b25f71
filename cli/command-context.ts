/** Where a command writes. */
export interface Output {
  write(text: string | Uint8Array): unknown;
  /** True for a terminal. */
  readonly isTTY?: boolean;
  /** The terminal's width. */
  readonly columns?: number;
}

/** Where a command reads. */
export type Input = NodeJS.ReadableStream & { readonly isTTY?: boolean };

/** What a configuration file said, by the variables of the settings. */
export interface LoadedConfig {
  path: string;
  values: ReadonlyMap<string, { text: string; line: number }>;
}

/** What a command touches of the process it runs in, so that a test can pass its own. */
export interface CommandContext {
  /** The environment, over what the configuration file says. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The configuration file whose values are in `env`, where there is one. */
  readonly configFile?: LoadedConfig;
  readonly stdin: Input;
  readonly stdout: Output;
  readonly stderr: Output;
  /** What a passphrase costs to try, as scrypt's N. Default: what the operator's token is sealed with; only tests lower it. */
  readonly passphraseCost?: number;
  /** Milliseconds since 1970. */
  now(): number;
  /** Runs something on SIGINT and SIGTERM in place of the default, which ends the process. The result takes it away. */
  onInterrupt(handler: () => void): () => void;
  /** Does what Ctrl-C does, where a question has taken the terminal's keys for itself. */
  interrupt(): void;
  /** The code that the process ends with, where nothing is thrown. Default 0. */
  setExitCode(code: number): void;
  /** Ends the process at once. */
  exitNow(code: number): void;
}

/** The context of this process. */
export function processContext(): CommandContext {
  ignoreBrokenPipe(process.stdout);
  ignoreBrokenPipe(process.stderr);
  return {
    env: process.env,
    stdin: process.stdin,
    stdout: process.stdout,
    stderr: process.stderr,
    now: Date.now,
    onInterrupt(handler) {
      process.on("SIGINT", handler);
      process.on("SIGTERM", handler);
      return () => {
        process.off("SIGINT", handler);
        process.off("SIGTERM", handler);
      };
    },
    interrupt: () => void process.kill(process.pid, "SIGINT"),
    setExitCode(code) {
      process.exitCode = code;
    },
    exitNow: (code) => process.exit(code),
  };
}

/** The reader of our output may stop reading, as `head` does; that is no error. */
function ignoreBrokenPipe(stream: NodeJS.WriteStream): void {
  stream.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code !== "EPIPE") throw error;
    process.exit();
  });
}
