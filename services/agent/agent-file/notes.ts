import type { AgentFileSchema } from "../../../gen/ts/reeve/agent/v1/agent_file_pb.ts";
import type { ReadMessage } from "../../../lib/yaml/message-reader.ts";

/** Where an agent's file is, and what it may refer to. */
export interface AgentFilePlace {
  /** As it is shown. */
  file: string;
  /** Which relative paths in it start from. Absolute. */
  folder: string;
  /** What "~" stands for. Undefined: nothing does. */
  home: string | undefined;
  /** The agent's name where the file states none. */
  name: string;
  env: Readonly<Record<string, string | undefined>>;
}

/** How the parts of a file report what they find. */
export interface Notes {
  read: ReadMessage<typeof AgentFileSchema>;
  /** A problem at a field, by its path. */
  problem(path: string, message: string): void;
  warning(path: string, message: string): void;
}
