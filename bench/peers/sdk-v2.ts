import type { ServerProcess } from "../measure/server-process.ts";
import type { Subject } from "../subjects/subject.ts";
import { peerModule } from "./packages.ts";

interface ClientModule {
  Client: new (
    info: object,
    options: object,
  ) => { connect(transport: object): Promise<void>; callTool(call: object): Promise<unknown> };
  StreamableHTTPClientTransport: new (url: URL) => object;
}

/** Client and server of the MCP SDK's version 2, which is no dependency of Reeve, in its newest version of the protocol. */
export async function sdkV2Subject({ url, usage }: ServerProcess): Promise<Subject> {
  const { Client, StreamableHTTPClientTransport } = await peerModule<ClientModule>("@modelcontextprotocol/client");
  const client = new Client({ name: "bench", version: "1.0.0" }, { versionNegotiation: { mode: "auto" } });
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  const call = async () => {
    await client.callTool({ name: "noop", arguments: {} });
  };
  return { name: "bare MCP, SDK v2", against: ["bare MCP"], call, usage };
}
