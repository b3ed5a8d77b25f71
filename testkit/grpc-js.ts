import { join } from "node:path";
import { Code, type ConnectError } from "@connectrpc/connect";
import { findTrailerError } from "@connectrpc/connect/protocol-grpc";
import {
  type CallOptions,
  Client,
  credentials,
  Metadata,
  type MethodDefinition,
  type ServiceError,
} from "@grpc/grpc-js";
import { load } from "@grpc/proto-loader";
import { repositoryRoot } from "../scripts/repository-root.ts";
import { withTemporaryFolder } from "../scripts/temporary-folder.ts";
import { writeThirdParty } from "../scripts/third-party.ts";

/** A client of @grpc/grpc-js that knows nothing of Reeve but its .proto files. */
export interface GrpcJs extends Disposable {
  /** Calls a unary RPC, such as "reeve.tools.v1.FileSystem/Read". Rejects with a ConnectError of what came back. */
  call(rpc: string, request: object, headers?: Record<string, string>, options?: CallOptions): Promise<GrpcAnswer>;
}

/** What a call came back with. */
export interface GrpcAnswer {
  /** The message, as proto-loader makes it: fields in camel case. */
  response: Record<string, unknown>;
  header(name: string): string | undefined;
}

type Methods = Map<string, MethodDefinition<object, Record<string, unknown>>>;

/** Reads some of the repository's .proto files and connects to a server. */
export async function grpcJsClient(url: string, token: string, protos: readonly string[]): Promise<GrpcJs> {
  const methods = await loadMethods(protos);
  const client = new Client(new URL(url).host, credentials.createInsecure());
  return {
    call(rpc, request, headers = {}, options = {}) {
      const method = methods.get(rpc);
      if (method === undefined) throw new Error(`the .proto files have no RPC ${rpc}`);
      const metadata = new Metadata();
      for (const [name, value] of Object.entries({ authorization: `Bearer ${token}`, ...headers }))
        metadata.set(name, value);
      const { promise, resolve, reject } = Promise.withResolvers<GrpcAnswer>();
      let received = new Metadata();
      const { path, requestSerialize, responseDeserialize } = method;
      client
        .makeUnaryRequest(
          path,
          requestSerialize,
          responseDeserialize,
          request,
          metadata,
          options,
          (error, response) => {
            if (error !== null) reject(errorOf(error));
            else resolve({ response: response ?? {}, header: (name) => received.get(name)[0]?.toString() });
          },
        )
        .on("metadata", (got) => {
          received = got;
        });
      return promise;
    },
    [Symbol.dispose]: () => client.close(),
  };
}

async function loadMethods(protos: readonly string[]): Promise<Methods> {
  const loaded = await withTemporaryFolder(async (folder) => {
    await writeThirdParty(folder);
    return load([...protos], {
      // As most clients read messages: a field that was not sent has its type's zero value.
      defaults: true,
      includeDirs: [join(repositoryRoot, "proto"), join(folder, "protovalidate")],
    });
  });
  const methods: Methods = new Map();
  for (const [service, definition] of Object.entries(loaded)) {
    if ("format" in definition) continue;
    for (const [name, method] of Object.entries(definition)) {
      methods.set(`${service}/${name}`, method as MethodDefinition<object, Record<string, unknown>>);
    }
  }
  return methods;
}

/** The error with its details, which grpc-js leaves in the trailer. */
function errorOf(error: ServiceError): ConnectError {
  const trailer = new Headers({ "grpc-status": String(error.code), "grpc-message": encodeURIComponent(error.details) });
  for (const value of error.metadata.get("grpc-status-details-bin")) {
    trailer.set("grpc-status-details-bin", Buffer.from(value).toString("base64"));
  }
  const found = findTrailerError(trailer);
  if (found === undefined) throw new Error(`no error with the code ${Code[error.code]}`);
  return found;
}
