import { randomUUID } from "node:crypto";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import {
  DeleteRequestSchema,
  EditRequestSchema,
  ListRequestSchema,
  MoveRequestSchema,
  ReadRequestSchema,
  SearchFilesRequestSchema,
  StatRequestSchema,
  UndoRequestSchema,
  WriteRequestSchema,
} from "../../../../gen/ts/reeve/tools/v1/file_system_pb.ts";
import { fileSystemTools } from "../file-system.ts";
import type { ToolContext } from "../tool.ts";

/** The file tools with inputs as a test writes them. Each use is a call of its own, whose id `last()` has. */
export function fileToolsIn(context: () => ToolContext) {
  let callId = "";
  const next = (): ToolContext => {
    callId = `call-${randomUUID()}`;
    return { ...context(), callId };
  };
  return {
    /** The id of the last call. */
    last: (): string => callId,
    read: (input: MessageInitShape<typeof ReadRequestSchema>) =>
      fileSystemTools.read(create(ReadRequestSchema, input), next()),
    write: (input: MessageInitShape<typeof WriteRequestSchema>) =>
      fileSystemTools.write(create(WriteRequestSchema, input), next()),
    list: (input: MessageInitShape<typeof ListRequestSchema>) =>
      fileSystemTools.list(create(ListRequestSchema, input), next()),
    stat: (input: MessageInitShape<typeof StatRequestSchema>) =>
      fileSystemTools.stat(create(StatRequestSchema, input), next()),
    delete: (input: MessageInitShape<typeof DeleteRequestSchema>) =>
      fileSystemTools.delete(create(DeleteRequestSchema, input), next()),
    move: (input: MessageInitShape<typeof MoveRequestSchema>) =>
      fileSystemTools.move(create(MoveRequestSchema, input), next()),
    search: (input: MessageInitShape<typeof SearchFilesRequestSchema>) =>
      fileSystemTools.searchFiles(create(SearchFilesRequestSchema, input), next()),
    edit: (input: MessageInitShape<typeof EditRequestSchema>) =>
      fileSystemTools.edit(create(EditRequestSchema, input), next()),
    undo: (call: string) => fileSystemTools.undo(create(UndoRequestSchema, { call }), next()),
  };
}
