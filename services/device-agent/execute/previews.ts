import type { JsonObject } from "@bufbuild/protobuf";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import type { Grant } from "../../../gen/ts/reeve/policy/v1/grant_pb.ts";
import { fault, faultDetail } from "../../../lib/fault/fault.ts";
import { sha256Hex } from "../../../lib/sign/canonical.ts";
import { changedFacts, type PreviewFact, previewOutput, readPreview } from "../../../lib/tool/preview.ts";
import type { ToolContext } from "../tools/tool.ts";

/** Says what a call's input stands for now. */
type Preview = (context: ToolContext) => Promise<PreviewFact[]>;

/** A preview that an approver was shown. */
export interface Previewed {
  /** The call under whose id this device made it. */
  id: string;
  /** SHA-256 of it, in hex. */
  digest: string;
  /** Makes it anew. */
  preview: Preview;
}

/** The preview that a grant names. Undefined where it names none. */
export function previewedBy(
  grant: Pick<Grant, "previewId" | "previewDigest">,
  preview: Preview,
): Previewed | undefined {
  return grant.previewDigest === "" ? undefined : { id: grant.previewId, digest: grant.previewDigest, preview };
}

/** Faults that say nothing of what the call is about: the preview was cut off, or could not be made here. */
const NO_FACT: ReadonlySet<ErrorReason> = new Set([
  ErrorReason.TIMED_OUT,
  ErrorReason.CANCELED,
  ErrorReason.NOT_AVAILABLE,
  ErrorReason.INTERNAL,
]);

/** A call that would fail as things are is no less to be shown, and held to: its approver sees why. */
const REFUSED = "would fail";

/** A preview as an output. Throws the faults of a preview that could not be made. */
export async function makePreview(preview: Preview, context: ToolContext): Promise<JsonObject> {
  try {
    return previewOutput(await preview(context));
  } catch (error: unknown) {
    const reason = faultDetail(error)?.reason;
    if (reason === undefined || NO_FACT.has(reason)) throw error;
    return previewOutput([{ name: REFUSED, value: error instanceof Error ? messageOf(error) : "" }]);
  }
}

/** Throws PRECONDITION_CHANGED{field} where a call's preview is not any more the one that its approver was shown. */
export async function requireUnchanged(
  { id, digest, preview }: Previewed,
  context: ToolContext,
  shown: (id: string) => Promise<Uint8Array | undefined>,
): Promise<void> {
  const now = Buffer.from(JSON.stringify(await makePreview(preview, context)));
  if (sha256Hex(now) === digest) return;
  const before = await shown(id);
  // Kept here for some weeks. What is not the text that was shown says nothing about it.
  const isKept = before !== undefined && sha256Hex(before) === digest;
  const [field, why] = isKept ? whatChanged(before, now) : ["", "it is not kept what that was"];
  const message = `what the call is about is not any more what its approver was shown: ${why}. Nothing was done; ask again`;
  throw fault(ErrorReason.PRECONDITION_CHANGED, { field }, { message });
}

function whatChanged(before: Uint8Array, now: Uint8Array): [field: string, why: string] {
  const changed = changedFacts(readPreview(before) ?? [], readPreview(now) ?? []);
  return [changed[0]?.name ?? "", changed.map(describeChange).join("; ")];
}

/** How much of a value a message repeats, in UTF-16 code units. */
const SAID = 120;

function describeChange({ name, before, after }: ReturnType<typeof changedFacts>[number]): string {
  // The caller reads this, too.
  if (before?.isContent || after?.isContent) return `${name} is another`;
  return `${name} was ${said(before)} and is ${said(after)}`;
}

function said(fact: PreviewFact | undefined): string {
  if (fact === undefined) return "not there";
  const { value } = fact;
  return JSON.stringify(value.length <= SAID ? value : `${value.slice(0, SAID).toWellFormed()} …`);
}

function messageOf(error: Error): string {
  return "rawMessage" in error && typeof error.rawMessage === "string" ? error.rawMessage : error.message;
}
