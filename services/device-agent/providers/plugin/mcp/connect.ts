import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { Client, StreamableHTTPClientTransport, type Transport } from "@modelcontextprotocol/client";
import type { ServerTool } from "../../../../../lib/plugin/server-tools.ts";
import { AGENT_VERSION } from "../../../agent-version.ts";
import type { OpenProgram } from "../../../executor/open-program.ts";
import { boundedFetch } from "./bounded-fetch.ts";
import { callFailure } from "./failure.ts";
import { type StdioTransport, stdioTransport } from "./stdio-transport.ts";

/** Where a server is reached. */
export type ServerPlace = { program: OpenProgram } | { url: string; headers: Readonly<Record<string, string>> };

/** How a call is made. */
export interface CallOptions {
  signal: AbortSignal;
  /** The longest it may take, in milliseconds. The signal ends it earlier. */
  timeoutMs: number;
  onProgress(text: string): void;
}

/** How a server is connected to. */
export interface ConnectOptions {
  /** Its name in errors. */
  service: string;
  place: ServerPlace;
  /** Whether it was found to be of the old generation, so that nothing else has to be tried. */
  isLegacy: boolean;
  /** It says that its list is another one. */
  onListChanged(): void;
  /** How long a server may take for each step of the handshake, in milliseconds. Default 10 s. */
  stepMs?: number;
}

/** A server that was shaken hands with. */
export interface Connection {
  /** Whether it is of the old generation of the protocol. */
  isLegacy: boolean;
  /** Lists its tools, as it says them. */
  list(): Promise<JsonValue[]>;
  /** Calls one. Resolves with its result. Faults: those of callFailure; where the signal is aborted it rejects with any error. */
  call(tool: ServerTool, args: JsonObject, options: CallOptions): Promise<JsonObject>;
  /** Resolves with why, when the connection is gone. */
  closed: Promise<string>;
  close(): void;
}

/** How long a server may take for a step of the handshake and for a page of its list, in milliseconds. */
const STEP_MS = 10_000;

/** The longest list that is read. */
const MAX_PAGES = 20;
const MAX_LISTED = 1000;

/**
 * Connects to a server, which may be of either generation of the protocol. It is offered nothing: no sampling, no questions to
 * people, no roots. Rejects where it does not answer as a server does; its program was ended then.
 */
export async function connect({
  service,
  place,
  isLegacy,
  onListChanged,
  stepMs = STEP_MS,
}: ConnectOptions): Promise<Connection> {
  const client = new Client(
    { name: "reeve", version: AGENT_VERSION },
    {
      capabilities: {},
      versionNegotiation: { mode: "auto", probe: { timeoutMs: stepMs } },
      inputRequired: { autoFulfill: false },
      listChanged: { tools: { autoRefresh: false, onChanged: onListChanged } },
    },
  );
  const { promise: closed, resolve } = Promise.withResolvers<string>();
  const transport = "program" in place ? stdioTransport(place.program) : httpTransport(place);
  client.onclose = () => resolve(whyClosed(transport));
  // Errors that belong to no request: they end nothing, and their words are the server's.
  client.onerror = () => undefined;
  try {
    await client.connect(transport, { timeout: stepMs, ...(isLegacy ? { prior: { kind: "legacy" } } : {}) });
  } catch (error: unknown) {
    const why = whyClosed(transport) || (error instanceof Error ? error.message : String(error));
    await transport.close().catch(() => undefined);
    throw new Error(why, { cause: error });
  }
  return {
    isLegacy: client.getProtocolEra() === "legacy",
    list: () => listTools(client),
    call: (tool, args, options) =>
      callTool(client, tool, args, options).catch((error: unknown) => {
        throw callFailure(service, error, whyClosed(transport));
      }),
    closed,
    close: () => void client.close().catch(() => undefined),
  };
}

function httpTransport({ url, headers }: Extract<ServerPlace, { url: string }>): Transport {
  return new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers }, fetch: boundedFetch });
}

function whyClosed(transport: Transport | StdioTransport): string {
  return "why" in transport ? transport.why() : "";
}

async function listTools(client: Client): Promise<JsonValue[]> {
  if (client.getServerCapabilities()?.tools === undefined) return [];
  const listed: JsonValue[] = [];
  let cursor: string | undefined;
  for (let page = 0; page < MAX_PAGES; page++) {
    const params = cursor === undefined ? {} : { cursor };
    // Not client.listTools, which prints the names of tools that it leaves out.
    const result = await client.request({ method: "tools/list", params }, { timeout: STEP_MS });
    listed.push(...(result.tools as unknown as JsonValue[]));
    if (listed.length > MAX_LISTED) throw new Error(`it lists more than ${MAX_LISTED} tools`);
    cursor = result.nextCursor;
    if (cursor === undefined) return listed;
  }
  throw new Error(`its list has more than ${MAX_PAGES} pages`);
}

async function callTool(
  client: Client,
  { remoteName, listedSchema }: ServerTool,
  args: JsonObject,
  { signal, timeoutMs, onProgress }: CallOptions,
): Promise<JsonObject> {
  const result = await client.callTool(
    { name: remoteName, arguments: args },
    {
      signal,
      timeout: timeoutMs,
      onprogress: ({ progress, total, message = "" }) =>
        onProgress(`${progress}${total === undefined ? "" : `/${total}`} ${message}`),
      // Without a schema of the output: the SDK would compile it, and it is the server's.
      toolDefinition: { name: remoteName, inputSchema: { ...listedSchema, type: "object" } },
    },
  );
  return result as unknown as JsonObject;
}
