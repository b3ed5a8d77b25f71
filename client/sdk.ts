/** What the SDK has everywhere: all but the transport, and what depends on it. */

export { Code, ConnectError, createClient } from "@connectrpc/connect";
export { type Approval, ApprovalState } from "../gen/ts/reeve/approval/v1/approval_pb.ts";
export { ApprovalService } from "../gen/ts/reeve/approval/v1/approval_service_pb.ts";
export { AuditService } from "../gen/ts/reeve/audit/v1/audit_service_pb.ts";
export { type Call, CallState } from "../gen/ts/reeve/call/v1/call_pb.ts";
export { CallService } from "../gen/ts/reeve/call/v1/call_service_pb.ts";
export { type ErrorDetail, ErrorReason } from "../gen/ts/reeve/common/v1/error_pb.ts";
export { type Device, LinkState } from "../gen/ts/reeve/device/v1/device_pb.ts";
export { DeviceService } from "../gen/ts/reeve/device/v1/device_service_pb.ts";
export { FanOutService, FanOutState } from "../gen/ts/reeve/fanout/v1/fan_out_service_pb.ts";
export { PrincipalService } from "../gen/ts/reeve/principal/v1/principal_service_pb.ts";
export { ScheduleService } from "../gen/ts/reeve/schedule/v1/schedule_service_pb.ts";
export type { Tool } from "../gen/ts/reeve/tool/v1/tool_pb.ts";
export { ToolService } from "../gen/ts/reeve/tool/v1/tool_service_pb.ts";
export { DeviceTools } from "../gen/ts/reeve/tools/v1/device_pb.ts";
export { Docker } from "../gen/ts/reeve/tools/v1/docker_pb.ts";
export { FileSystem, WriteMode } from "../gen/ts/reeve/tools/v1/file_system_pb.ts";
export { Git } from "../gen/ts/reeve/tools/v1/git_pb.ts";
export { Http } from "../gen/ts/reeve/tools/v1/http_pb.ts";
export { Job, JobState } from "../gen/ts/reeve/tools/v1/job_pb.ts";
export { Matrix } from "../gen/ts/reeve/tools/v1/matrix_pb.ts";
export { Package } from "../gen/ts/reeve/tools/v1/package_pb.ts";
export { Process } from "../gen/ts/reeve/tools/v1/process_pb.ts";
export { Shell } from "../gen/ts/reeve/tools/v1/shell_pb.ts";
export { Ssh } from "../gen/ts/reeve/tools/v1/ssh_pb.ts";
export { isPending, type WatchApprovalsOptions, watchApprovals } from "./approvals.ts";
export { type CallEnd, type CallUpdate, isEnd, stateName } from "./call-progress.ts";
export type { CallRequest, CallStream, CallStreamOptions } from "./call-stream.ts";
export {
  type CallClient,
  type CallOptions,
  type FollowOptions,
  followCall,
  type NewCall,
  newCallId,
} from "./call-tool.ts";
export { type ApprovalNeeded, approvalOf, errorOf, isRetryable, type ReeveError, reasonOf } from "./errors.ts";
export { type FollowFanOutOptions, followFanOut, watchFanOut } from "./fan-out.ts";
export { type CallMetadata, callHeaders, withDevice } from "./metadata.ts";
export { items, type Page, pages } from "./pages.ts";
export { type ReceiptResult, verifyReceipt } from "./receipt.ts";
export { type RegistryClient, registryClient } from "./registry.ts";
export { mayReconnect, RETRY_DELAYS_MS, type WatchOptions } from "./retry.ts";
export {
  type ActionOptions,
  type ActionOrigin,
  type ActionResult,
  actionCallId,
  runToolCallAction,
  type ToolCallAction,
} from "./tool-call-action.ts";
export type { ReeveTransport, TransportOptions } from "./transport.ts";
