import { createServer } from "node:http2";
import type { AddressInfo } from "node:net";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { DeviceTools } from "../../gen/ts/reeve/tools/v1/device_pb.ts";
import { reportUsage } from "./report-usage.ts";

// A bare connect-node server with one unary RPC: what the protocol alone costs.
const handler = connectNodeAdapter({
  acceptCompression: [],
  routes: (router) => router.service(DeviceTools, { ping: ({ text }) => ({ text }) }),
});
const server = createServer(handler);
server.listen(0, "127.0.0.1", () => reportUsage({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }));
