import { createClient } from "@connectrpc/connect";
import { CallState } from "../../gen/ts/reeve/registry/v1/call_pb.ts";
import { RegistryService } from "../../gen/ts/reeve/registry/v1/registry_service_pb.ts";
import { createServiceTransport } from "../../lib/serve/client.ts";
import type { ServerProcess } from "../measure/server-process.ts";
import { openCallStream } from "./call-stream.ts";
import type { Subject } from "./subject.ts";

const NOOP = { tool: "device.ping", params: {} };
const EXEC = { tool: "exec", params: { argv: ["/bin/true"] } };

/** The governed calls: validated, decided, granted, run by the device, cleaned and recorded. */
export function governedSubjects(server: ServerProcess): Subject[] {
  const transport = createServiceTransport({ baseUrl: server.url, token: server.token, readMaxBytes: 16 << 20 });
  const client = createClient(RegistryService, transport);
  const stream = openCallStream(client);
  const unary = (request: typeof NOOP | typeof EXEC) => async () => {
    const { call } = await client.callTool(request);
    if (call?.state !== CallState.SUCCEEDED)
      throw new Error(`a governed call ended as ${call?.state}: ${call?.errorMessage}`);
  };
  const streamed = (request: typeof NOOP | typeof EXEC) => async () => {
    const call = await stream.call(request);
    if (call.state !== CallState.SUCCEEDED)
      throw new Error(`a governed call ended as ${call.state}: ${call.errorMessage}`);
  };
  const { usage } = server;
  return [
    { name: "governed unary", work: "noop", call: unary(NOOP), usage },
    { name: "governed stream", work: "noop", call: streamed(NOOP), usage },
    { name: "governed unary exec", work: "exec", call: unary(EXEC), usage },
    { name: "governed stream exec", work: "exec", call: streamed(EXEC), usage },
  ];
}
