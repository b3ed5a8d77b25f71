import type { DescFile } from "@bufbuild/protobuf";
import { Code, type ConnectRouter } from "@connectrpc/connect";
import { ServerReflection, type ServerReflectionRequest } from "../../gen/ts/grpc/reflection/v1/reflection_pb.ts";
import { ServerReflection as ServerReflectionAlpha } from "../../gen/ts/grpc/reflection/v1alpha/reflection_pb.ts";
import type { ReflectionIndex } from "./reflection-index.ts";

/** The same in both versions of the protocol. */
type Query = ServerReflectionRequest["messageRequest"] | { case: undefined; value?: undefined } | AlphaQuery;
type AlphaQuery = { case: "fileContainingExtension"; value: { containingType: string; extensionNumber: number } };

type Answer =
  | { case: "fileDescriptorResponse"; value: { fileDescriptorProto: Uint8Array[] } }
  | { case: "allExtensionNumbersResponse"; value: { baseTypeName: string; extensionNumber: number[] } }
  | { case: "listServicesResponse"; value: { service: { name: string }[] } }
  | { case: "errorResponse"; value: { errorCode: number; errorMessage: string } };

/**
 * Serves grpc.reflection.v1 and v1alpha (https://github.com/grpc/grpc/blob/master/doc/server-reflection.md). On one stream
 * each imported file is sent once.
 */
export function serveReflection(router: ConnectRouter, index: ReflectionIndex): void {
  router.service(ServerReflection, {
    async *serverReflectionInfo(requests) {
      const sent = new Set<string>();
      for await (const request of requests) {
        const messageResponse = answer(index, request.messageRequest, sent);
        yield { validHost: request.host, originalRequest: request, messageResponse };
      }
    },
  });
  router.service(ServerReflectionAlpha, {
    async *serverReflectionInfo(requests) {
      const sent = new Set<string>();
      for await (const request of requests) {
        const messageResponse = answer(index, request.messageRequest, sent);
        yield { validHost: request.host, originalRequest: request, messageResponse };
      }
    },
  });
}

function answer(index: ReflectionIndex, query: Query, sent: Set<string>): Answer {
  switch (query.case) {
    case "listServices":
      return { case: "listServicesResponse", value: { service: index.services.map((name) => ({ name })) } };
    case "fileByFilename":
      return files(index, index.fileNamed(query.value), sent);
    case "fileContainingSymbol":
      return files(index, index.fileDeclaring(query.value), sent);
    case "fileContainingExtension": {
      const { containingType, extensionNumber } = query.value;
      return files(index, index.extension(containingType, extensionNumber)?.file, sent);
    }
    case "allExtensionNumbersOfType": {
      const extensionNumber = index.extensionNumbers(query.value);
      if (extensionNumber === undefined) return error(Code.NotFound, "no such message");
      return { case: "allExtensionNumbersResponse", value: { baseTypeName: query.value, extensionNumber } };
    }
    default:
      return error(Code.InvalidArgument, "the request asks for nothing");
  }
}

function files(index: ReflectionIndex, file: DescFile | undefined, sent: Set<string>): Answer {
  if (file === undefined) return error(Code.NotFound, "not found");
  const wanted = [...index.withImports(file)].filter(([name]) => name === file.name || !sent.has(name));
  for (const [name] of wanted) sent.add(name);
  return { case: "fileDescriptorResponse", value: { fileDescriptorProto: wanted.map(([, bytes]) => bytes) } };
}

function error(errorCode: Code, errorMessage: string): Answer {
  return { case: "errorResponse", value: { errorCode, errorMessage } };
}
