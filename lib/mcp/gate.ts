import type { JsonObject } from "@bufbuild/protobuf";
import type { Call, CallSpec, CallState } from "../../gen/ts/reeve/call/v1/call_pb.ts";
import type { CallEvent } from "../../gen/ts/reeve/call/v1/call_service_pb.ts";
import type { CallWithStatus } from "../model-tools/call-facts.ts";
import type { McpToolset } from "./toolset.ts";

/** What the face for MCP needs of the gate, on behalf of one principal. */
export interface McpGate {
  /** What the principal can use now. */
  toolset(): Promise<McpToolset>;
  /** Sends a call. Resolves once policy has decided about it. Throws a fault where it never became a call. */
  begin(request: McpCallRequest): Promise<BegunCall>;
  /** A call that the principal may see. Throws NOT_FOUND. */
  find(callId: string): Promise<BegunCall>;
  /** Cancels a call and returns it as it stands then. Throws as CancelCall. */
  cancel(callId: string): Promise<McpCall>;
  /** The principal's own calls, newest first, without their output. Throws INVALID_INPUT for a token that no page has named. */
  list(request: ListOwnCalls): Promise<OwnCallsPage>;
  /** One of the principal's own calls, with its arguments as they may be shown. Throws NOT_FOUND, for those of others as well. */
  read(callId: string): Promise<McpCall>;
}

/** Asks for a page of calls. */
export interface ListOwnCalls {
  pageSize: number;
  /** Empty for the first page. */
  pageToken: string;
  /** Default any. */
  state?: CallState;
}

/** Some calls. */
export interface OwnCallsPage {
  calls: readonly McpCall[];
  /** Empty on the last page. */
  nextPageToken: string;
}

/** A call that an MCP client asks for. */
export interface McpCallRequest {
  deviceId: string;
  /** The tool's own name. */
  tool: string;
  params: JsonObject;
  /** What the client says that it is: printable ASCII, at most 64. */
  client: string;
}

/** A call as it stands. */
export type McpCall = CallWithStatus & Pick<Call, "createTime"> & { spec: CallSpec };

/** A call that was sent. */
export interface BegunCall {
  /** As it stands now. */
  readonly call: McpCall;
  /** Whether it is an earlier request's, which asked for the same and was held. */
  readonly joined: boolean;
  /** Waits for its end. */
  wait(options: WaitOptions): Promise<McpCall>;
}

/** How long a call is waited for. */
export interface WaitOptions {
  /** How long a held one waits for its person, in milliseconds. */
  heldMs: number;
  /** Ends the wait: the call is returned as it stands. */
  signal: AbortSignal;
  /** Receives what happens meanwhile; output comes no faster than the promises resolve. Must not throw. Default: nothing does. */
  onEvent?: ((event: CallEvent) => Promise<void> | undefined) | undefined;
}
