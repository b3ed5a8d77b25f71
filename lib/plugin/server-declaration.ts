import { isServiceName } from "../toolschema/names.ts";
import type { EnvPart } from "./env-template.ts";
import type { JsonPlace, JsonReader } from "./json-reader.ts";
import { PROGRAM_KEYS, type ProgramDeclaration, readProgram } from "./program-declaration.ts";
import { readTemplate } from "./template-field.ts";
import { readTimeoutSeconds } from "./tool-declaration.ts";

/** An MCP server as a plugin.json declares it, by its name in `mcp_servers`. */
export interface ServerDeclaration {
  name: string;
  place: ServerProgram | ServerAddress;
  /** The longest that a call of its tools may take. */
  timeoutSeconds: number;
  /** Whether several calls of its tools may run at a time. */
  concurrencySafe: boolean;
  /** Those of its tools, by their names at the server, that the plugin's author declares to only read. */
  readOnly: readonly string[];
}

/** A server that the device starts, and speaks to by its standard streams. */
export interface ServerProgram extends ProgramDeclaration {
  kind: "program";
}

/** A server that runs already, and speaks streamable HTTP. */
export interface ServerAddress {
  kind: "address";
  url: string;
  headers: readonly (readonly [name: string, parts: readonly EnvPart[]])[];
}

const OF_ADDRESS = ["url", "headers"] as const;
const KEYS = [...OF_ADDRESS, ...PROGRAM_KEYS, "timeout_seconds", "concurrency_safe", "read_only"] as const;

/** Reads one. `allowed` are the variables of the agent's environment that the plugin may refer to. */
export function readServer(
  reader: JsonReader,
  [name, place]: [string, JsonPlace],
  allowed: ReadonlySet<string>,
): ServerDeclaration {
  const field = reader.fields(place, "an MCP server", KEYS);
  if (!isServiceName(name))
    reader.report(place, `"${name}" is no name of a server: a-z, 0-9 and -, a letter first, at most 32`);
  const isProgram = field("url").value === undefined;
  for (const key of isProgram ? OF_ADDRESS : PROGRAM_KEYS)
    if (field(key).value !== undefined)
      reader.report(field(key), `${key}: a server has a command or a url, each with fields of its own`);
  return {
    name,
    place: isProgram
      ? { kind: "program", ...readProgram(reader, field, allowed, "workspace") }
      : { kind: "address", url: url(reader, field("url")), headers: headers(reader, field("headers"), allowed) },
    timeoutSeconds: readTimeoutSeconds(reader, field("timeout_seconds")),
    concurrencySafe: reader.flag(field("concurrency_safe"), "concurrency_safe"),
    readOnly: reader.items(field("read_only"), "read_only").map((item) => reader.text(item, "read_only") ?? ""),
  };
}

function url(reader: JsonReader, place: JsonPlace): string {
  const text = reader.text(place, "url") ?? "";
  const parsed = URL.parse(text);
  if (parsed === null || !/^https?:$/.test(parsed.protocol) || parsed.username !== "" || parsed.password !== "")
    reader.report(place, "url must be an http or https address without a name or a password in it");
  return text;
}

/** A token of RFC 9110, 5.6.2. */
const HEADER = /^[\w!#$%&'*+.^`|~-]+$/;

/** What the transport sets itself. */
const OWN_HEADER = /^(?:mcp-.*|host|content-.*|connection|transfer-encoding|accept)$/i;

function headers(reader: JsonReader, place: JsonPlace, allowed: ReadonlySet<string>): ServerAddress["headers"] {
  return reader.members(place, "headers").map(([name, value]) => {
    if (!HEADER.test(name) || OWN_HEADER.test(name))
      reader.report(value, `headers: "${name}" is no name of a header that a plugin may set`);
    return [name, readTemplate(reader, value, `headers.${name}`, allowed)];
  });
}
