import type { FileSystem } from "../../../gen/ts/reeve/tools/v1/file_system_pb.ts";
import { deletePath } from "./fs/delete.ts";
import { editFile } from "./fs/edit.ts";
import { listFolder } from "./fs/list.ts";
import { movePath } from "./fs/move.ts";
import { readSlice } from "./fs/read.ts";
import { searchFiles } from "./fs/search/search.ts";
import { describe } from "./fs/stat.ts";
import { undoCall } from "./fs/undo.ts";
import { writeFile } from "./fs/write.ts";
import type { ToolFamily } from "./tool.ts";

/** Files and folders. Every path goes through the roots, which walk descriptors and follow no symbolic link. */
export const fileSystemTools: ToolFamily<typeof FileSystem> = {
  read: readSlice,
  write: writeFile,
  list: listFolder,
  stat: describe,
  delete: deletePath,
  move: movePath,
  searchFiles,
  edit: editFile,
  undo: undoCall,
};
