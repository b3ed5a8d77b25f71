import type { Stats } from "node:fs";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { type Timestamp, timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  FileType,
  type StatRequest,
  type StatResponseSchema,
} from "../../../../gen/ts/reeve/tools/v1/file_system_pb.ts";
import type { ToolContext } from "../tool.ts";

/** fs.stat: what a path names, without following a symbolic link and without opening anything. */
export async function describe(
  { path }: StatRequest,
  { roots }: ToolContext,
): Promise<MessageInitShape<typeof StatResponseSchema>> {
  using entry = roots.openEntry(path, { access: "read", field: "path" });
  const { stats, linkTarget } = entry;
  return {
    type: typeOf(stats),
    size: BigInt(stats.size),
    permissions: (stats.mode & 0o7777).toString(8).padStart(4, "0"),
    uid: stats.uid,
    gid: stats.gid,
    modifyTime: timeOf(stats.mtimeMs),
    changeTime: timeOf(stats.ctimeMs),
    linkTarget,
    diskBytes: BigInt(stats.blocks) * 512n,
  };
}

/** The kind of thing that stat found. */
export function typeOf(stats: Pick<Stats, "isFile" | "isDirectory" | "isSymbolicLink">): FileType {
  if (stats.isFile()) return FileType.FILE;
  if (stats.isDirectory()) return FileType.DIRECTORY;
  return stats.isSymbolicLink() ? FileType.SYMLINK : FileType.OTHER;
}

/** A time of stat, in milliseconds with a fraction. */
export function timeOf(ms: number): Timestamp {
  return timestampFromMs(Math.floor(ms));
}
