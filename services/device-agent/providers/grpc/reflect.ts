import { fromBinary } from "@bufbuild/protobuf";
import { type FileDescriptorProto, FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, createClient, type Transport } from "@connectrpc/connect";
import { ServerReflection } from "../../../../gen/ts/grpc/reflection/v1/reflection_pb.ts";
import { ServerReflection as ServerReflectionAlpha } from "../../../../gen/ts/grpc/reflection/v1alpha/reflection_pb.ts";
import { isKnownFile } from "../../../../lib/toolschema/known-files.ts";
import { createMeters, LIMITS, LimitExceeded } from "../../../../lib/toolschema/limits.ts";
import { measureFile, nameOfFile } from "../../../../lib/toolschema/measure.ts";

/** The files that define what a server serves. */
export interface ReflectedFiles {
  /** Full names of its services, but for those of gRPC itself. */
  services: string[];
  /** Their files and what these import, by name; without the well-known ones, which the reader knows. */
  files: Map<string, FileDescriptorProto>;
}

/** The most questions that one server is asked: for each service, and for each import of each file. */
const MAX_QUESTIONS = 2000;

type Query =
  | { case: "listServices"; value: string }
  | { case: "fileContainingSymbol"; value: string }
  | { case: "fileByFilename"; value: string };

type Ask = (query: Query) => Promise<{ services: string[]; files: Uint8Array[] }>;

/**
 * Asks a server for its descriptors by server reflection, v1, or v1alpha where it has no v1
 * (https://github.com/grpc/grpc/blob/master/doc/server-reflection.md). Rejects with a ConnectError where it answers neither,
 * and with LimitExceeded where it has more to describe than could be announced.
 */
export async function reflectFiles(transport: Transport, signal: AbortSignal): Promise<ReflectedFiles> {
  const first = askV1(transport, signal);
  const query: Query = { case: "listServices", value: "" };
  let ask = first;
  const listed = await first(query).catch((error: unknown) => {
    if (ConnectError.from(error).code !== Code.Unimplemented) throw error;
    ask = askAlpha(transport, signal);
    return ask(query);
  });
  const services = listed.services.filter((name) => !name.startsWith("grpc."));
  return { services, files: await filesOf(services, ask) };
}

async function filesOf(services: readonly string[], ask: Ask): Promise<Map<string, FileDescriptorProto>> {
  if (services.length > LIMITS.services) throw new LimitExceeded("services");
  const files = new Map<string, FileDescriptorProto>();
  const meter = createMeters();
  const wanted: Query[] = services.map((value) => ({ case: "fileContainingSymbol", value }));
  // The list grows while it is walked: each file brings the names of those that it imports.
  for (const query of wanted) {
    if (query.case === "fileByFilename" && files.has(query.value)) continue;
    for (const bytes of (await ask(query)).files) {
      const name = nameOfFile(bytes);
      if (isKnownFile(name) || files.has(name)) continue;
      measureFile(bytes, meter);
      const file = fromBinary(FileDescriptorProtoSchema, bytes);
      files.set(file.name, file);
      const imports = new Set(file.dependency.filter((one) => !isKnownFile(one) && !files.has(one)));
      for (const value of imports) wanted.push({ case: "fileByFilename", value });
      if (wanted.length > MAX_QUESTIONS) throw new LimitExceeded("files");
    }
  }
  return files;
}

function askV1(transport: Transport, signal: AbortSignal): Ask {
  const client = createClient(ServerReflection, transport);
  return async (query) => answered(client.serverReflectionInfo(once({ messageRequest: query }), { signal }));
}

function askAlpha(transport: Transport, signal: AbortSignal): Ask {
  const client = createClient(ServerReflectionAlpha, transport);
  return async (query) => answered(client.serverReflectionInfo(once({ messageRequest: query }), { signal }));
}

interface Answer {
  messageResponse:
    | { case: "listServicesResponse"; value: { service: { name: string }[] } }
    | { case: "fileDescriptorResponse"; value: { fileDescriptorProto: Uint8Array[] } }
    | { case: "errorResponse"; value: { errorCode: number; errorMessage: string } }
    | { case: "allExtensionNumbersResponse"; value: object }
    | { case: undefined; value?: undefined };
}

/** One question a stream: a service has a handful of files, and this needs no bookkeeping. */
async function answered(answers: AsyncIterable<Answer>): Promise<Awaited<ReturnType<Ask>>> {
  for await (const { messageResponse } of answers) {
    switch (messageResponse.case) {
      case "listServicesResponse":
        return { services: messageResponse.value.service.map(({ name }) => name), files: [] };
      case "fileDescriptorResponse":
        return { services: [], files: messageResponse.value.fileDescriptorProto };
      case "errorResponse":
        throw new ConnectError(messageResponse.value.errorMessage, messageResponse.value.errorCode);
      default:
    }
  }
  throw new ConnectError("server reflection gave no answer", Code.Internal);
}

async function* once<T>(message: T): AsyncGenerator<T> {
  yield message;
}
