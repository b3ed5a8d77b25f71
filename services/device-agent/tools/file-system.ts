import type { FileSystem } from "../../../gen/ts/reeve/tools/v1/file_system_pb.ts";
import { deletePath } from "./fs/delete.ts";
import { listFolder } from "./fs/list.ts";
import { readSlice } from "./fs/read.ts";
import { describe } from "./fs/stat.ts";
import { writeFile } from "./fs/write.ts";
import type { ToolFamily } from "./tool.ts";

/** Files and folders. Every path goes through the roots, which walk descriptors and follow no symbolic link. */
export const fileSystemTools: ToolFamily<typeof FileSystem> = {
  read: readSlice,
  write: writeFile,
  list: listFolder,
  stat: describe,
  delete: deletePath,
};
