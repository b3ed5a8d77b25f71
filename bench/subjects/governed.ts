import type { JsonObject } from "@bufbuild/protobuf";
import { type RegistryClient, registryClient } from "../../client/registry.ts";
import { type Call, CallState } from "../../gen/ts/reeve/call/v1/call_pb.ts";
import { createServiceTransport } from "../../lib/rpc-client/transport.ts";
import type { ServerProcess } from "../measure/server-process.ts";
import { openCallStream } from "./call-stream.ts";
import type { Subject } from "./subject.ts";

/** What is asked for. */
export interface Request {
  device?: string;
  tool: string;
  params: JsonObject;
}

/** A tool that does nothing. */
export const NOOP: Request = { tool: "device.ping", params: {} };

const EXEC: Request = { tool: "exec", params: { argv: ["/bin/true"] } };

/** The same program; the policy of the bench lets this name run in the sandbox only. */
const SANDBOXED: Request = { tool: "exec", params: { argv: ["true"] } };

/** The governed calls: validated, decided, granted, run by the device, cleaned and recorded. */
export function governedSubjects(server: ServerProcess): Subject[] {
  const transport = createServiceTransport({ baseUrl: server.url, token: server.token, readMaxBytes: 16 << 20 });
  const { unary, streamed } = governedCalls(registryClient(transport));
  const { usage } = server;
  return [
    { name: "governed unary", against: ["bare MCP"], call: unary(NOOP), usage },
    { name: "governed stream", against: ["bare MCP"], call: streamed(NOOP), usage },
    { name: "governed unary exec", against: ["bare MCP exec"], call: unary(EXEC), usage },
    { name: "governed stream exec", against: ["bare MCP exec"], call: streamed(EXEC), usage },
  ];
}

/** Programs through the gate, outside the sandbox and in it. */
export function governedSandboxSubjects(server: ServerProcess): Subject[] {
  const { streamed } = governedCalls(
    registryClient(createServiceTransport({ baseUrl: server.url, token: server.token })),
  );
  const { usage } = server;
  return [
    { name: "governed exec", against: ["bare spawn"], call: streamed(EXEC), usage },
    { name: "governed exec, sandbox", against: ["governed exec"], call: streamed(SANDBOXED), usage },
  ];
}

/** Calls through a registry, each by itself or all on one stream. A call that does not succeed rejects. */
export function governedCalls(client: RegistryClient) {
  const stream = openCallStream(client);
  return {
    unary: (request: Request) => async () => requireSuccess((await client.callTool(request)).call),
    streamed: (request: Request) => async () => requireSuccess(await stream.call(request)),
  };
}

function requireSuccess(call: Call | undefined): void {
  if (call?.status?.state === CallState.SUCCEEDED) return;
  throw new Error(`a governed call ended as ${call?.status?.state}: ${call?.status?.errorMessage}`);
}
