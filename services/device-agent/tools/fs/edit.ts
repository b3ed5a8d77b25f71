import { closeSync, constants } from "node:fs";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { ErrorReason } from "../../../../gen/ts/reeve/common/v1/error_pb.ts";
import type { EditRequest, EditResponseSchema } from "../../../../gen/ts/reeve/tools/v1/file_system_pb.ts";
import { fault } from "../../../../lib/fault/fault.ts";
import { sha256Hex } from "../../../../lib/sign/canonical.ts";
import type { HeldEntry } from "../../roots/held.ts";
import { asFault, refused, requireFile, requireOneName } from "../../roots/refusals.ts";
import type { HeldParent } from "../../roots/roots.ts";
import { NotUndoable } from "../../undo/change.ts";
import type { ToolContext } from "../tool.ts";
import { changed } from "./changed.ts";
import { decodeText, encodeText, encodingOf, formOf } from "./encoding.ts";
import { attributesOf, hasIdentity, identityOf, keepEntry, keepFirst, pathIn, readEntry } from "./keep.ts";
import { occurrences } from "./occurrences.ts";
import { replaceFileAt } from "./put-file.ts";

const NEED = { access: "write", field: "path" } as const;

/** The largest file that is edited, in bytes. */
const LARGEST = 8 * 1024 * 1024;

/**
 * fs.edit: replaces a text that stands in the file as often as the caller says. The file keeps its permissions, owner,
 * encoding, byte order mark and line ends. A file that changes while it is edited is left as it is: PRECONDITION_CHANGED.
 */
export async function editFile(
  request: EditRequest,
  context: ToolContext,
): Promise<MessageInitShape<typeof EditResponseSchema>> {
  using place = context.roots.openParent(request.path, NEED);
  try {
    using file = held(place);
    // A rename needs no right to the old file. A plain write would.
    closeSync(file.open(constants.O_WRONLY));
    const edit = editBytes(await contentOf(file), request);
    const after = { kind: "file", sha256: sha256Hex(edit.bytes) } as const;
    const kept = await keepFirst(context, async (draft) => {
      const { before } = await keepEntry(file, draft);
      return [{ kind: "content", path: pathIn(place.folder, place.name), before, after }];
    });
    await replaceFileAt(place, edit.bytes, attributesOf(file.stats), () => requireSame(place, file));
    const { replaced, line } = edit;
    return { replaced, line: BigInt(line), size: BigInt(edit.bytes.length), sha256: after.sha256, ...kept };
  } catch (error: unknown) {
    throw asFault(error, request.path, NEED);
  }
}

/** A file's bytes as they are, and as they are after an edit. Throws the errno of the system, or the faults of editFile. */
export async function editOf(place: HeldParent, request: EditRequest): Promise<[before: Buffer, after: Buffer]> {
  using file = held(place);
  const before = await contentOf(file);
  return [before, editBytes(before, request).bytes];
}

function held(place: HeldParent): HeldEntry {
  const entry = place.look();
  if (entry === undefined) throw Object.assign(new Error(place.path), { code: "ENOENT" });
  try {
    requireFile(entry, place.path, NEED);
    requireOneName(entry, place.path, NEED);
    return entry;
  } catch (error: unknown) {
    entry[Symbol.dispose]();
    throw error;
  }
}

async function contentOf(file: HeldEntry): Promise<Buffer> {
  try {
    return await readEntry(file, LARGEST);
  } catch (error: unknown) {
    if (!(error instanceof NotUndoable)) throw error;
    if (file.stats.size > LARGEST)
      throw refused(file.path, NEED.field, "EFBIG", `is larger than ${LARGEST} bytes`, error);
    throw changed(file.path, NEED.field, "was changed while it was read");
  }
}

/** The name still stands for the file that was read, and nothing was written to it. */
function requireSame(place: HeldParent, file: HeldEntry): void {
  using now = place.look();
  if (!hasIdentity(now, identityOf(file.stats)))
    throw changed(place.path, NEED.field, "was changed while it was edited");
}

interface Edit {
  bytes: Buffer;
  replaced: number;
  line: number;
}

/** The file's bytes after the edit. Pure. Faults: OS_REFUSED for what is no text; PRECONDITION_CHANGED for another count. */
function editBytes(file: Buffer, { path, oldText, newText, expectedCount, encoding: named }: EditRequest): Edit {
  const { encoding, mark } = formOf(file, encodingOf(named));
  const text = decodeText(file.subarray(mark.length), encoding);
  if (text === undefined) throw refused(path, NEED.field, "EILSEQ", `is no valid ${encoding}: name its encoding`);
  const ends = lineEndsOf(text);
  const [wanted, fresh] = [ends(oldText), ends(newText)];
  const places = countedPlaces(text, wanted, expectedCount || 1, path);
  const parts: string[] = [];
  let from = 0;
  for (const at of places) {
    parts.push(text.slice(from, at), fresh);
    from = at + wanted.length;
  }
  parts.push(text.slice(from));
  const bytes = encodeText(parts.join(""), encoding);
  if (bytes === undefined) throw refused(path, "newText", "EILSEQ", `is ${encoding}, which has no such characters`);
  const line = text.slice(0, places[0]).split("\n").length;
  return { bytes: Buffer.concat([mark, bytes]), replaced: places.length, line };
}

function countedPlaces(text: string, wanted: string, count: number, path: string): number[] {
  const places = occurrences(text, wanted, count + 1);
  if (places.length === count && places.every((at, n) => n === 0 || at - (places[n - 1] ?? 0) >= wanted.length))
    return places;
  const overlap = places.length === count ? ", and overlaps itself" : "";
  const found = places.length > count ? `more than ${count}` : String(places.length);
  const message = `${path} holds the old text ${found} times${overlap}, not ${count}: nothing was changed. Read the file again, and quote more around the place`;
  throw fault(ErrorReason.PRECONDITION_CHANGED, { field: "oldText", path }, { message });
}

/** A file whose lines all end in CR LF keeps them, also where the caller writes LF. */
function lineEndsOf(text: string): (part: string) => string {
  const isCrLf = text.includes("\r\n") && !/(?:^|[^\r])\n/.test(text);
  return (part) => (isCrLf ? part.replaceAll("\r\n", "\n").replaceAll("\n", "\r\n") : part);
}
