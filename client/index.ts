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
export { Code, ConnectError, createClient } from "@connectrpc/connect";
export { type ErrorDetail, ErrorReason } from "../gen/ts/reeve/common/v1/error_pb.ts";
export { type Device, LinkState } from "../gen/ts/reeve/device/v1/device_pb.ts";
export { type Approval, ApprovalState } from "../gen/ts/reeve/policy/v1/approval_pb.ts";
export { ApprovalService } from "../gen/ts/reeve/policy/v1/approval_service_pb.ts";
export { type Call, CallState } from "../gen/ts/reeve/registry/v1/call_pb.ts";
export { RegistryService } from "../gen/ts/reeve/registry/v1/registry_service_pb.ts";
export type { Tool } from "../gen/ts/reeve/tool/v1/tool_pb.ts";
export { Device as DeviceTools } from "../gen/ts/reeve/tools/v1/device_pb.ts";
export { Docker } from "../gen/ts/reeve/tools/v1/docker_pb.ts";
export { FileSystem, WriteMode } from "../gen/ts/reeve/tools/v1/file_system_pb.ts";
export { Git } from "../gen/ts/reeve/tools/v1/git_pb.ts";
export { Package } from "../gen/ts/reeve/tools/v1/package_pb.ts";
export { Process } from "../gen/ts/reeve/tools/v1/process_pb.ts";
export { Shell } from "../gen/ts/reeve/tools/v1/shell_pb.ts";
export { type ApprovalNeeded, approvalOf, errorOf, type ReeveError, reasonOf } from "./errors.ts";
export { type CallMetadata, callHeaders, withDevice } from "./metadata.ts";
export { createReeveTransport, type ReeveTransport, type ReeveTransportOptions } from "./transport.ts";
