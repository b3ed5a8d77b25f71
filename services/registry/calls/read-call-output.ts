import { create } from "@bufbuild/protobuf";
import {
  type GetCallOutputRequest,
  type GetCallOutputResponse,
  GetCallOutputResponseSchema,
} from "../../../gen/ts/reeve/call/v1/call_service_pb.ts";
import type { Principal } from "../../../lib/auth/principal.ts";
import { createOutputCleaner } from "../../../lib/sanitize/output-cleaner.ts";
import { CONTEXT_BYTES } from "../../../lib/sanitize/sanitize.ts";
import type { Calls } from "./calls.ts";

const DEFAULT_BYTES = 256 * 1024;

/**
 * A part of what a call that the principal may see has printed, sanitized as if all before it had been read. What is held back
 * at its end comes with the next part.
 */
export async function readCallOutput(
  calls: Calls,
  { callId, fromSequence, maxBytes }: GetCallOutputRequest,
  principal: Principal,
): Promise<GetCallOutputResponse> {
  const found = await calls.find(callId, principal);
  const contextBytes = fromSequence > 0 ? CONTEXT_BYTES : 0;
  const range = { fromSequence, maxBytes: maxBytes || DEFAULT_BYTES, contextBytes };
  const { chunks: read, nextSequence, summary } = await calls.outputOf(found).read(range);
  const cleaner = createOutputCleaner(read.filter(({ sequence }) => sequence < fromSequence));
  const chunks = read.filter(({ sequence }) => sequence >= fromSequence).map(cleaner.clean);
  const complete = summary?.open === false && nextSequence >= summary.chunks;
  const rest = complete ? cleaner.rest().filter(({ sequence }) => sequence >= fromSequence) : [];
  return create(GetCallOutputResponseSchema, {
    chunks: [...chunks, ...rest].filter(({ data }) => data.length > 0),
    nextSequence: Math.max(nextSequence, ...rest.map(({ sequence }) => sequence + 1)),
    ...(summary && { summary }),
    complete,
  });
}
