import { create } from "@bufbuild/protobuf";
import { RunState } from "../../../gen/ts/reeve/agent/v1/run_pb.ts";
import {
  type ListRunsRequest,
  type ListRunsResponse,
  ListRunsResponseSchema,
} from "../../../gen/ts/reeve/agent/v1/run_service_pb.ts";
import type { Principal } from "../../../lib/auth/principal.ts";
import { seesAll } from "../../../lib/auth/scoped-id.ts";
import { readPageToken, writePageToken } from "../../../lib/pages/page-token.ts";
import type { RunStore } from "./store.ts";

/** How many runs a page holds by default. */
const DEFAULT_PAGE = 50;

/** Runs, newest first, a page at a time, without their calls. */
export async function listRuns(
  store: Pick<RunStore, "list">,
  { pageSize, pageToken, state }: ListRunsRequest,
  principal: Principal,
): Promise<ListRunsResponse> {
  const before = readPageToken(pageToken);
  const { runs, next } = await store.list({
    limit: pageSize === 0 ? DEFAULT_PAGE : pageSize,
    ...(before !== undefined && { before }),
    ...(state !== RunState.UNSPECIFIED && { state }),
    ...(!seesAll(principal) && { principalId: principal.id }),
  });
  return create(ListRunsResponseSchema, { runs, nextPageToken: next === undefined ? "" : writePageToken(next) });
}
