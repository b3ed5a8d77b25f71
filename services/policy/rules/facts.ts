import type { JsonObject } from "@bufbuild/protobuf";

/** Everything that rules can look at. Plain data: from a request, or completed from an example. */
export interface Facts {
  principal: { id: string; roles: readonly string[] };
  device: DeviceFacts;
  tool: ToolFacts;
  /** The arguments as JSON. */
  args: JsonObject;
  /** Through which door the call came in: "rpc", "stream", "http", "cli" or "llm". */
  source: string;
  /** When it was asked, in milliseconds since 1970. */
  timeMs: number;
}

/** What rules can look at of a device. */
export interface DeviceFacts {
  id: string;
  name: string;
  labels: Readonly<Record<string, string>>;
  mode: string;
  sandbox: string;
  /** The folders whose files may be read, or read and written. Absolute, real paths. */
  roots: readonly string[];
}

/** What rules can look at of a tool. The names are those of the rule language. */
export interface ToolFacts {
  name: string;
  capability: string;
  read_only: boolean;
  destructive: boolean;
  idempotent: boolean;
  open_world: boolean;
  requires_approval: boolean;
}
