import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { ErrorReason } from "../../../../../gen/ts/reeve/common/v1/error_pb.ts";
import { fault } from "../../../../../lib/fault/fault.ts";
import type { ServerTool } from "../../../../../lib/plugin/server-tools.ts";
import { cleanText } from "../../../../../lib/toolschema/announced-tool.ts";
import { throwIfAborted } from "../../../tools/outcome.ts";
import type { ToolContext } from "../../../tools/tool.ts";
import type { CallOptions, Connection, ServerPlace } from "./connect.ts";
import { outputOf } from "./result.ts";

/** An MCP server of a plugin, which runs while it is used. */
export interface McpServer extends Disposable {
  /** What it listed last; undefined where it has not yet. */
  listed(): readonly JsonValue[] | undefined;
  /** Why it could not be used the last time, or undefined. It is tried again when it is needed. */
  problem(): string | undefined;
  /** Has it list its tools. Never rejects: see problem. */
  discover(): Promise<void>;
  /**
   * Calls a tool, once, on a server that still lists it as it was accepted. Faults: START_FAILED{program,cause} and
   * NOT_AVAILABLE{tool,program} where nothing ran; TOOL_FAILED{service,code}; TIMED_OUT, CANCELED, after which the server was
   * asked to stop; INTERRUPTED where it died meanwhile, so that what it did is not known.
   */
  call(tool: ServerTool, args: JsonObject, context: ToolContext): Promise<JsonObject>;
}

/** What a server is run with. */
export interface McpServerOptions {
  /** The names of its plugin and of itself, such as "files/fs". */
  service: string;
  /** Starts it, or finds where it is. Called for each connection. */
  open(): Promise<ServerPlace>;
  /** Whether a tool in its list is the one that is to be called, with nothing changed. */
  isListed(tool: ServerTool, listed: readonly JsonValue[]): boolean;
  /** Its list is another one, or what is wrong with it is. */
  onChange(): void;
  /** How long it stays without a call, in milliseconds. Default 10 minutes. */
  idleMs?: number;
  /** How often its list is read again while it runs, in milliseconds. Default a minute. */
  relistMs?: number;
}

const IDLE_MS = 600_000;
const RELIST_MS = 60_000;

/** How long it is left alone after it failed so many times in a row, in milliseconds: not at all the first time. */
function backoffMs(failures: number): number {
  return failures < 2 ? 0 : Math.min(60_000, 1000 * 2 ** (failures - 2));
}

/** A server that is connected to when it is first needed, and again after it ended. */
export function createMcpServer(options: McpServerOptions): McpServer {
  const { service, open, isListed, onChange, idleMs = IDLE_MS, relistMs = RELIST_MS } = options;
  let current: Promise<Connection> | undefined;
  let listed: readonly JsonValue[] | undefined;
  let problem: string | undefined;
  let isLegacy = false;
  let failures = 0;
  let notBefore = 0;
  let calls = 0;
  // Whether its list changed and could not be read since.
  let stale = false;
  let idle: NodeJS.Timeout | undefined;
  let disposed = false;

  const fail = (why: string): void => {
    failures++;
    notBefore = performance.now() + backoffMs(failures);
    setProblem(`its MCP server ${service} cannot be used: ${cleanText(why.slice(0, 500))}`);
  };
  const setProblem = (next: string | undefined): void => {
    if (problem === next) return;
    problem = next;
    onChange();
  };
  const setListed = (next: readonly JsonValue[]): void => {
    const isSame = JSON.stringify(listed) === JSON.stringify(next);
    listed = next;
    if (!isSame) onChange();
  };
  const relist = async (connection: Connection): Promise<void> => {
    try {
      setListed(await connection.list());
      stale = false;
    } catch (error: unknown) {
      // What it offers now is not known any more. One that is at work may be too busy to say, and is not ended for that.
      stale = true;
      if (calls > 0) return;
      connection.close();
      fail(wordsOf(error));
    }
  };
  const connectNow = async (): Promise<Connection> => {
    const { connect } = await import("./connect.ts");
    let changed = (): void => undefined;
    const connection = await connect({ service, place: await open(), isLegacy, onListChanged: () => changed() });
    isLegacy = connection.isLegacy;
    try {
      setListed(await connection.list());
      stale = false;
    } catch (error: unknown) {
      connection.close();
      throw error;
    }
    changed = () => void relist(connection);
    const timer = setInterval(() => calls === 0 && changed(), relistMs).unref();
    void connection.closed.then(() => clearInterval(timer));
    return connection;
  };
  const connection = (): Promise<Connection> => {
    if (current !== undefined) return current;
    const opening = connectNow();
    const forget = (): void => {
      if (current === opening) current = undefined;
    };
    current = opening;
    opening.then(
      (opened) => {
        if (disposed) opened.close();
        setProblem(undefined);
        void opened.closed.then((why) => {
          // One that was closed for want of calls is not at fault.
          const wasWanted = current === opening && !disposed;
          forget();
          if (wasWanted) fail(why);
        });
      },
      (error: unknown) => {
        forget();
        fail(wordsOf(error));
      },
    );
    return opening;
  };
  const rest = (): void => {
    clearTimeout(idle);
    if (calls > 0 || disposed) return;
    idle = setTimeout(() => close(), idleMs).unref();
  };
  const close = (): void => {
    const closing = current;
    current = undefined;
    void closing?.then((opened) => opened.close()).catch(() => undefined);
  };
  /** Faults where it cannot be reached: nothing ran. */
  const reached = async (tool: string): Promise<Connection> => {
    const waitMs = notBefore - performance.now();
    if (waitMs > 0) throw notStarted(service, tool, `${problem}; it is tried again in ${Math.ceil(waitMs / 1000)} s`);
    try {
      return await connection();
    } catch (error: unknown) {
      throw notStarted(service, tool, problem ?? wordsOf(error), error);
    }
  };

  return {
    listed: () => listed,
    problem: () => problem,
    async discover() {
      if (performance.now() < notBefore || disposed) return;
      await connection().then(rest, () => undefined);
    },
    async call(tool, args, context) {
      clearTimeout(idle);
      calls++;
      try {
        const opened = await aborted(context, reached(tool.name));
        if (stale) await aborted(context, relist(opened));
        if (stale) throw notStarted(service, tool.name, `the MCP server ${service} does not list its tools any more`);
        if (!isListed(tool, listed ?? [])) throw changed(service, tool.name);
        throwIfAborted(context);
        const result = await opened.call(tool, args, callOptions(context)).catch((error: unknown) => {
          throwIfAborted(context);
          throw error;
        });
        failures = 0;
        return outputOf(service, result);
      } finally {
        calls--;
        rest();
      }
    },
    [Symbol.dispose]() {
      disposed = true;
      clearTimeout(idle);
      close();
    },
  };
}

/** What is given to a server beside the time of the call, so that the call's own signal comes first, in milliseconds. */
const SLACK_MS = 5000;

/** The longest text of one progress, in characters. */
const MAX_PROGRESS = 500;

function callOptions({ signal, timeoutMs, emit }: ToolContext): CallOptions {
  return {
    signal,
    timeoutMs: timeoutMs + SLACK_MS,
    onProgress: (text) => void emit("stderr", Buffer.from(`${cleanText(text.slice(0, MAX_PROGRESS)).trim()}\n`)),
  };
}

/** The same, unless the call ends first. Faults: CANCELED, TIMED_OUT. */
async function aborted<T>(context: ToolContext, promise: Promise<T>): Promise<T> {
  const { promise: ended, resolve } = Promise.withResolvers<undefined>();
  const onAbort = (): void => resolve(undefined);
  promise.catch(() => undefined);
  context.signal.addEventListener("abort", onAbort, { once: true });
  if (context.signal.aborted) onAbort();
  try {
    const first = await Promise.race([promise, ended]);
    throwIfAborted(context);
    return first ?? (await promise);
  } finally {
    context.signal.removeEventListener("abort", onAbort);
  }
}

function notStarted(service: string, tool: string, why: string, cause?: unknown): Error {
  const message = `${tool} did not run: ${why}`;
  return fault(ErrorReason.START_FAILED, { program: service, cause: "mcp" }, { message, cause });
}

function changed(service: string, tool: string): Error {
  const message = `the MCP server ${service} does not describe ${tool} as it was accepted any more, so nothing ran`;
  return fault(ErrorReason.NOT_AVAILABLE, { tool, program: service }, { message });
}

function wordsOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
