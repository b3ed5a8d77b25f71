import {
  INTERNAL_ERROR,
  INVALID_PARAMS,
  ProtocolError,
  type ReadResourceResult,
  type Resource,
  ResourceNotFoundError,
  type ResourceTemplateType,
} from "@modelcontextprotocol/server";
import { CallState } from "../../gen/ts/reeve/call/v1/call_pb.ts";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { fault, faultDetail, reasonOf } from "../fault/fault.ts";
import { stateWord } from "../model-tools/call-facts.ts";
import { thrownFacts } from "../model-tools/error-text.ts";
import type { McpCall, McpGate } from "./gate.ts";
import { approvalUri, approvalView, callUri, callView, isoOf } from "./resource-views.ts";
import type { GateServerOptions } from "./server.ts";

const JSON_TYPE = "application/json";

/** How many calls a page of the list is about. */
const PAGE = 50;

/** How many pages are looked through for an approval, and how many calls each is about: calls are not found by it. */
const SEARCH = { pages: 4, pageSize: 250 };

/** What may be read by its id. */
export const RESOURCE_TEMPLATES: readonly ResourceTemplateType[] = [
  {
    uriTemplate: callUri("{call_id}"),
    name: "call",
    description: "One of your calls: how it stands, its arguments, and its output or what went wrong.",
    mimeType: JSON_TYPE,
  },
  {
    uriTemplate: approvalUri("{approval_id}"),
    name: "approval",
    description: "The approval of one of your calls: whether a person still has to decide, and where.",
    mimeType: JSON_TYPE,
  },
];

/** What the methods of resources do. Reading runs nothing. */
export interface ResourceHandlers {
  list(cursor: string | undefined): Promise<{ resources: Resource[]; nextCursor?: string }>;
  read(uri: string): Promise<ReadResourceResult>;
}

/**
 * The principal's own calls and their approvals. Another's is not found, as one that does not exist. What goes wrong is an
 * error of the protocol: no model has asked.
 */
export function resourceHandlers(
  gate: Pick<McpGate, "list" | "read">,
  { approvalUrl, onError }: Pick<GateServerOptions, "approvalUrl" | "onError">,
): ResourceHandlers {
  return {
    async list(cursor = "") {
      const page = gate.list({ pageSize: PAGE, pageToken: cursor });
      const { calls, nextPageToken } = await page.catch((thrown: unknown) => {
        throw protocolError(thrown, onError);
      });
      return { resources: resourcesOf(calls), ...(nextPageToken === "" ? {} : { nextCursor: nextPageToken }) };
    },
    async read(uri) {
      const [, kind, id = ""] = /^reeve:\/\/(calls|approvals)\/([A-Za-z0-9_-]{1,64})$/.exec(uri) ?? [];
      if (kind === undefined) throw new ResourceNotFoundError(uri.slice(0, 200));
      try {
        const view =
          kind === "calls"
            ? callView(await gate.read(id), approvalUrl)
            : approvalView(await callHeldBy(gate, id), approvalUrl);
        return { contents: [{ uri, mimeType: JSON_TYPE, text: JSON.stringify(view) }] };
      } catch (thrown: unknown) {
        if (reasonOf(thrown) === ErrorReason.NOT_FOUND) throw new ResourceNotFoundError(uri);
        throw protocolError(thrown, onError);
      }
    },
  };
}

/** Each call, followed by its approval; that of several calls once. */
function resourcesOf(calls: readonly McpCall[]): Resource[] {
  const approvals = new Set<string>();
  return calls.flatMap((call) => {
    const { id, spec, status, createTime } = call;
    const what = `${spec.tool} on ${JSON.stringify(spec.deviceName)}`;
    const changed = isoOf(status.endTime ?? status.approval?.decideTime ?? createTime);
    const common = { mimeType: JSON_TYPE, ...(changed && { annotations: { lastModified: changed } }) };
    const own = { uri: callUri(id), name: id, title: `${what}: ${stateWord(status.state)}`, ...common };
    const approval = status.approval?.id;
    if (approval === undefined || approvals.has(approval)) return [own];
    approvals.add(approval);
    return [own, { uri: approvalUri(approval), name: approval, title: `approval of ${what}`, ...common }];
  });
}

/** A call by its approval: one of those that are held, or of the newest. */
async function callHeldBy(gate: Pick<McpGate, "list">, approvalId: string): Promise<McpCall> {
  const { pages, pageSize } = SEARCH;
  for (const only of [{ state: CallState.HELD }, {}]) {
    for (let pageToken = "", read = 0; read < pages; read++) {
      const page = await gate.list({ pageSize, pageToken, ...only });
      const found = page.calls.find(({ status }) => status.approval?.id === approvalId);
      if (found !== undefined) return found;
      pageToken = page.nextPageToken;
      if (pageToken === "") break;
    }
  }
  throw fault(ErrorReason.NOT_FOUND);
}

/** A fault's own message, and nothing of other errors. */
function protocolError(thrown: unknown, onError: (error: unknown) => void): ProtocolError {
  if (faultDetail(thrown) === undefined) onError(thrown);
  const code = reasonOf(thrown) === ErrorReason.INVALID_INPUT ? INVALID_PARAMS : INTERNAL_ERROR;
  return new ProtocolError(code, thrownFacts(thrown).message);
}
