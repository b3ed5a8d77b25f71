import {
  deserializeMessage,
  type JSONRPCMessage,
  serializeMessage,
  type Transport,
} from "@modelcontextprotocol/client";
import { cleanOutput } from "../../../../../lib/sanitize/sanitize.ts";
import { jsonDepth } from "../../../../../lib/tool/json-schema.ts";
import type { OpenProgram } from "../../../executor/open-program.ts";
import { createBudget } from "./budget.ts";

/** The longest message of a server, in bytes: a result of twice the size that a call may return. */
const MAX_MESSAGE = 4 * 1024 * 1024;

/** How deep a message may be nested. */
const MAX_DEPTH = 64;

/** What a server may print that no request asked for: in messages, and in bytes. */
const MESSAGES = { burst: 5000, perSecond: 500 };
const BYTES = { burst: 8 * 1024 * 1024, perSecond: 1024 * 1024 };

/** How much of its standard error is kept, in characters. */
const MAX_WORDS = 500;

/** The reason where there is none but that it is not needed any more. */
const CLOSED = "the device closed it";

/** A transport over the standard streams of a program. */
export interface StdioTransport extends Transport {
  /** The SDK takes a transport with these two for one of a program, whose silence means that it is of the old generation. */
  readonly pid: number;
  readonly stderr: null;
  /** Why it closed by itself, with the last words of the program; empty where it is open, or the device closed it. */
  why(): string;
}

/**
 * Speaks MCP with a program: one message on a line. What a hostile one can print is bounded: a message that is too long or too
 * deep, or more than it may print unasked, ends the program. Lines that are no messages are skipped.
 */
export function stdioTransport(program: OpenProgram): StdioTransport {
  const messages = createBudget(MESSAGES);
  const bytes = createBudget(BYTES);
  const asked = new Set<string | number>();
  let pieces: Buffer[] = [];
  let pending = 0;
  let words = "";
  let reason = "";
  let started = false;

  const close = (why: string): void => {
    if (reason !== "") return;
    reason = why;
    pieces = [];
    void program.end();
    transport.onclose?.();
  };
  const receive = (line: string): void => {
    if (reason !== "") return;
    const message = parsed(line);
    const isAnswer = message !== undefined && !("method" in message) && asked.delete(message.id ?? "");
    if (!isAnswer && !(messages.take(1) && bytes.take(line.length))) close("it printed more than it was asked for");
    else if (message !== undefined) transport.onmessage?.(message);
  };
  const read = (chunk: Buffer): void => {
    let from = 0;
    for (let end = chunk.indexOf(10); end !== -1 && reason === ""; end = chunk.indexOf(10, from)) {
      const line = Buffer.concat([...pieces, chunk.subarray(from, end)]).toString("utf8");
      pieces = [];
      pending = 0;
      from = end + 1;
      receive(line);
    }
    if (reason !== "") return;
    pieces.push(chunk.subarray(from));
    pending += chunk.length - from;
    if (pending > MAX_MESSAGE) close(`it printed a message of more than ${MAX_MESSAGE} bytes`);
  };

  const transport: StdioTransport = {
    pid: program.pid,
    stderr: null,
    why: () => (reason === CLOSED ? "" : reason),
    async start() {
      // The SDK starts it once to negotiate, and once again.
      if (started) return;
      started = true;
      program.stdout.on("data", read);
      program.stderr.on("data", (chunk: Buffer) => {
        words = (words + chunk.toString("utf8")).slice(-MAX_WORDS);
      });
      program.exited.then(
        ({ code, signal }) => close(ending(code, signal, words)),
        (error: unknown) => close(error instanceof Error ? error.message : String(error)),
      );
    },
    async send(message: JSONRPCMessage) {
      if (reason !== "") throw new Error(reason);
      if ("method" in message && "id" in message) asked.add(message.id);
      await written(program, serializeMessage(message));
    },
    async close() {
      close(CLOSED);
    },
  };
  return transport;
}

function parsed(line: string): JSONRPCMessage | undefined {
  try {
    const message = deserializeMessage(line);
    return jsonDepth(message as never) > MAX_DEPTH ? undefined : message;
  } catch {
    // Some servers print a line for a person first.
    return undefined;
  }
}

function ending(code: number | null, signal: string | null, words: string): string {
  const said = cleanOutput(words).text.trim();
  const how = signal === null ? `it ended with exit code ${code}` : `it was ended by ${signal}`;
  return said === "" ? how : `${how}; it had said: ${said}`;
}

/** Waits while the program does not read, until it has ended. */
function written({ stdin, exited }: OpenProgram, text: string): Promise<void> {
  if (stdin.write(text)) return Promise.resolve();
  const drained = new Promise<void>((resolve) => void stdin.once("drain", resolve));
  return Promise.race([drained, exited.then(() => undefined)]);
}
