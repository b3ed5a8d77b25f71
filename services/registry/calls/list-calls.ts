import { create } from "@bufbuild/protobuf";
import { CallState } from "../../../gen/ts/reeve/call/v1/call_pb.ts";
import {
  type ListCallsRequest,
  type ListCallsResponse,
  ListCallsResponseSchema,
} from "../../../gen/ts/reeve/call/v1/call_service_pb.ts";
import type { Principal } from "../../../lib/auth/principal.ts";
import { seesAll } from "../../../lib/auth/scoped-id.ts";
import { readPageToken, writePageToken } from "../../../lib/pages/page-token.ts";
import type { Directory } from "../devices/directory.ts";
import type { GovernedCall } from "./governed-call.ts";
import type { CallStore } from "./store.ts";

/** How many calls a page holds by default. */
const DEFAULT_PAGE = 50;

/** Calls, newest first, a page at a time, with short arguments and without their output. */
export async function listCalls(
  store: CallStore,
  directory: Directory,
  request: ListCallsRequest,
  principal: Principal,
): Promise<ListCallsResponse> {
  const pageSize = request.pageSize === 0 ? DEFAULT_PAGE : request.pageSize;
  const page = await readPage(store, request.pageToken, {
    limit: pageSize,
    ...(request.state === CallState.UNSPECIFIED ? {} : { state: request.state }),
    ...(request.device === "" ? {} : { deviceId: (await directory.find(request.device)).id }),
    ...(request.tool === "" ? {} : { tool: request.tool }),
    ...(seesAll(principal) ? {} : { principalId: principal.id }),
  });
  return create(ListCallsResponseSchema, page);
}

/** The same of the principal's own calls only, whosever it may see. */
export function listOwnCalls(
  store: CallStore,
  { pageToken, pageSize, state }: { pageToken: string; pageSize: number; state?: CallState },
  { id: principalId }: Pick<Principal, "id">,
): Promise<CallsPage> {
  return readPage(store, pageToken, { limit: pageSize, principalId, ...(state === undefined ? {} : { state }) });
}

interface CallsPage {
  calls: GovernedCall[];
  nextPageToken: string;
}

async function readPage(
  store: CallStore,
  pageToken: string,
  filter: Parameters<CallStore["list"]>[0],
): Promise<CallsPage> {
  const before = readPageToken(pageToken);
  const { calls, more } = await store.list(before === undefined ? filter : { ...filter, before });
  const last = more ? calls.at(-1) : undefined;
  return {
    calls: calls.map(({ call }) => call),
    nextPageToken: last === undefined ? "" : writePageToken(last.row),
  };
}
