import {
  clone,
  create,
  createFileRegistry,
  type DescMethodUnary,
  type DescService,
  type FileRegistry,
  type Message,
  toBinary,
} from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema, FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, type ConnectRouter } from "@connectrpc/connect";
import { createLogger } from "../lib/log/log.ts";
import { createServer } from "../lib/server/server.ts";
import { compileProtos } from "../scripts/compile-proto.ts";

/** A service that is no part of Reeve, whose RPCs are annotated. */
export const PRINTER_PROTO = `syntax = "proto3";
package acme.printer.v1;
import "buf/validate/validate.proto";
import "google/protobuf/timestamp.proto";
import "reeve/options/v1/tool.proto";

// A printer.
service Printer {
  // Print a text on paper.
  rpc Print(PrintRequest) returns (PrintResponse) {
    option (reeve.options.v1.tool) = { name: "print" capabilities: ["print"] scope: SCOPE_USER destructive: true };
  }
  // Say how much paper there is.
  rpc GetPaper(GetPaperRequest) returns (GetPaperResponse) {
    option idempotency_level = NO_SIDE_EFFECTS;
    option (reeve.options.v1.tool) = { name: "paper.get" capabilities: ["paper.get"] scope: SCOPE_USER };
  }
  // Send every page as it comes out.
  rpc WatchPages(GetPaperRequest) returns (stream GetPaperResponse) {
    option (reeve.options.v1.tool) = { name: "pages.watch" capabilities: ["pages"] scope: SCOPE_USER };
  }
  // Not annotated, so that no caller reaches it through Reeve.
  rpc Reset(GetPaperRequest) returns (GetPaperResponse);
}

// What to print.
message PrintRequest {
  // The text to print.
  string text = 1 [(buf.validate.field).string.min_len = 1];
  // How many copies. At most 5.
  uint32 copies = 2 [(buf.validate.field).uint32.lte = 5];
}

// What was printed.
message PrintResponse {
  // How many pages came out.
  uint32 pages = 1;
  // When.
  google.protobuf.Timestamp print_time = 2;
}

// Asks for the paper.
message GetPaperRequest {}

// The paper.
message GetPaperResponse {
  // How many sheets there are.
  uint32 sheets = 1;
}
`;

/** The types of a .proto file that is written as source, and all it imports, with comments. */
export function compileSource(source: string): Promise<FileRegistry> {
  return compileProtos({ "acme/printer/v1/printer.proto": source });
}

/** The descriptor set of a file of a registry, with all it imports. */
export function descriptorSetOf(registry: FileRegistry, name = "acme/printer/v1/printer.proto"): Uint8Array {
  const wanted = new Set<string>();
  const add = (path: string): void => {
    if (wanted.has(path)) return;
    wanted.add(path);
    for (const imported of registry.getFile(path)?.proto.dependency ?? []) add(imported);
  };
  add(name);
  const file = [...registry.files].map(({ proto }) => proto).filter((proto) => wanted.has(proto.name));
  return toBinary(FileDescriptorSetSchema, create(FileDescriptorSetSchema, { file }));
}

/** A printer that is served over gRPC, with server reflection. */
export interface Printer {
  url: string;
  /** What it was asked to print. */
  printed: { text: string; copies: number }[];
  /** The service's types. */
  registry: FileRegistry;
  /** What it does with the next texts: throws what this returns, where it returns something. */
  fail: ((text: string) => Error | undefined) | undefined;
  /** Resolves when a text "forever" was given up by its caller. */
  gaveUp: Promise<void>;
  close(): Promise<void>;
}

/** Starts one on a free port. */
export async function startPrinter(): Promise<Printer> {
  const registry = await compileSource(PRINTER_PROTO);
  const service = registry.getService("acme.printer.v1.Printer");
  if (service === undefined) throw new Error("the source does not define the printer");
  const { promise: gaveUp, resolve } = Promise.withResolvers<void>();
  const printer: Printer = { url: "", printed: [], registry, fail: undefined, gaveUp, close: () => server.close() };
  const server = await createServer({
    routes: (router) => serve(router, service, printer, resolve),
    services: [service],
    access: () => ({ public: true, roles: [] }),
    authenticate: () => undefined,
    logger: createLogger({ service: "printer", level: "silent" }),
  });
  printer.url = server.url;
  return printer;
}

type Answer = Record<string, unknown>;

function serve(router: ConnectRouter, service: DescService, printer: Printer, gaveUp: () => void): void {
  const rpc = (name: string, answer: (input: Message, signal: AbortSignal) => Answer | Promise<Answer>) => {
    const method = service.methods.find((one): one is DescMethodUnary => one.name === name);
    if (method !== undefined) router.rpc(method, (input, { signal }) => answer(input, signal));
  };
  rpc("GetPaper", () => ({ sheets: 42 }));
  rpc("Print", async (input, signal) => {
    const { text, copies } = input as Message & { text: string; copies: number };
    const failure = printer.fail?.(text);
    if (failure !== undefined) throw failure;
    printer.printed.push({ text, copies });
    if (text === "forever") await untilGivenUp(signal, gaveUp);
    return { pages: Math.max(1, copies), printTime: { seconds: 1_800_000_000n, nanos: 0 } };
  });
}

function untilGivenUp(signal: AbortSignal, gaveUp: () => void): Promise<never> {
  return new Promise((_, reject) => {
    const stop = () => {
      gaveUp();
      reject(new ConnectError("given up", Code.Canceled));
    };
    if (signal.aborted) stop();
    else signal.addEventListener("abort", stop, { once: true });
  });
}

/** The same types without comments, as server reflection of most servers gives them. */
export function withoutComments(registry: FileRegistry): FileRegistry {
  const file = [...registry.files].map(({ proto }) => {
    const bare = clone(FileDescriptorProtoSchema, proto);
    delete bare.sourceCodeInfo;
    return bare;
  });
  return createFileRegistry(create(FileDescriptorSetSchema, { file }));
}
