/**
 * Clients of a Reeve control plane: a transport, and the generated types and services.
 *
 * ```ts
 * const transport = createReeveTransport({ url: "http://127.0.0.1:7400", token, device: "laptop" });
 * const files = createClient(FileSystem, transport);
 * const { text } = await files.read({ path: "/etc/hosts" }); // a governed call of fs.read
 * ```
 *
 * @module
 */

export { openCallStream } from "./call-stream.ts";
export { callTool } from "./call-tool.ts";
export { createReeveTransport, type ReeveTransportOptions } from "./node.ts";
export * from "./sdk.ts";
