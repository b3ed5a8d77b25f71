import { closeSync, constants } from "node:fs";
import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  WriteMode,
  type WriteRequest,
  type WriteResponseSchema,
} from "../../../../gen/ts/reeve/tools/v1/file_system_pb.ts";
import { sha256Hex } from "../../../../lib/sign/canonical.ts";
import { asFault, requireFile, requireOneName } from "../../roots/refusals.ts";
import type { HeldParent } from "../../roots/roots.ts";
import type { Change } from "../../undo/change.ts";
import type { UndoDraft } from "../../undo/journal.ts";
import type { ToolContext } from "../tool.ts";
import { attributesOf, keepEntry, keepFirst, pathIn } from "./keep.ts";
import { createFile, fill, replaceFileAt } from "./put-file.ts";

const { O_WRONLY, O_APPEND } = constants;

const NEED = { access: "write", field: "path" } as const;

const DEFAULT_PERMISSIONS = 0o644;

interface Job {
  place: HeldParent;
  bytes: Uint8Array;
  permissions: number;
}

/** fs.write: creates, replaces atomically, or appends, and is on the disk when it returns. */
export async function writeFile(
  input: WriteRequest,
  context: ToolContext,
): Promise<MessageInitShape<typeof WriteResponseSchema>> {
  const { path, text, data, mode, createFolders } = input;
  const need = { access: "write", field: "path", createFolders } as const;
  const bytes = data.length > 0 ? data : Buffer.from(text, "utf8");
  const permissions = input.permissions || DEFAULT_PERMISSIONS;
  using place = context.roots.openParent(path, need);
  const job = { place, bytes, permissions };
  try {
    const kept = await keepFirst(context, (draft) => changesOf(mode, job, draft));
    const created = await put(mode, job);
    return { bytesWritten: BigInt(bytes.length), created, sha256: sha256Hex(bytes), ...kept };
  } catch (error: unknown) {
    throw asFault(error, path, need);
  }
}

async function changesOf(mode: WriteMode, { place, bytes }: Job, draft: UndoDraft): Promise<Change[]> {
  using existing = place.look();
  const { before, bytes: old } = await keepEntry(existing, draft);
  const content = mode === WriteMode.APPEND ? Buffer.concat([old, bytes]) : bytes;
  const after = { kind: "file", sha256: sha256Hex(content) } as const;
  return [{ kind: "content", path: pathIn(place.folder, place.name), before, after }];
}

async function put(mode: WriteMode, job: Job): Promise<boolean> {
  if (mode === WriteMode.CREATE) return await create(job);
  return mode === WriteMode.APPEND ? await append(job) : await replace(job);
}

async function create({ place, bytes, permissions }: Job): Promise<boolean> {
  await createFile(place, bytes, { mode: permissions });
  return true;
}

async function append(job: Job): Promise<boolean> {
  using existing = job.place.look();
  if (existing === undefined) return await create(job);
  requireFile(existing, job.place.path, NEED);
  requireOneName(existing, job.place.path, NEED);
  await fill(existing.open(O_WRONLY | O_APPEND), job.bytes);
  return false;
}

async function replace({ place, bytes, permissions }: Job): Promise<boolean> {
  using existing = place.look();
  if (existing !== undefined) {
    requireFile(existing, place.path, NEED);
    // A rename needs no right to the old file. A plain write would.
    closeSync(existing.open(O_WRONLY));
  }
  await replaceFileAt(place, bytes, existing === undefined ? { mode: permissions } : attributesOf(existing.stats));
  return existing === undefined;
}
