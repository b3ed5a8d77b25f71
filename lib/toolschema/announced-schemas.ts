import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { durationMs } from "@bufbuild/protobuf/wkt";
import type {
  AnnouncedSchemas,
  AnnouncedTools,
  AnnouncedTool as Described,
} from "../../gen/ts/reeve/device/v1/manifest_pb.ts";
import { Scope } from "../../gen/ts/reeve/options/v1/tool_pb.ts";
import { parseStrictJson } from "../json/strict-json.ts";
import { jsonDepth, schemaAt } from "../tool/json-schema.ts";
import { jsonSchemaCodec } from "../tool/json-schema-codec.ts";
import type { ToolScope } from "../tool/spec.ts";
import type { Announced } from "./announced.ts";
import { type AnnouncedTool, announcedSpec, cleanText } from "./announced-tool.ts";
import { checkSchema } from "./check-schema.ts";
import { createMeter, LIMITS, LimitExceeded } from "./limits.ts";
import { announcedName, isToolName } from "./names.ts";
import { DEFAULT_TIMEOUT_MS } from "./tool.ts";

const SCOPES: ReadonlyMap<Scope, ToolScope> = new Map([
  [Scope.USER, "user"],
  [Scope.SUDO, "sudo"],
  [Scope.ANY, "any"],
]);

/** The tools of an announcement that JSON Schemas define; held to the limits of those that descriptors define. */
export function describeSchemas(definition: AnnouncedTools, { tools }: AnnouncedSchemas): Announced {
  if (tools.length > LIMITS.tools) throw new LimitExceeded("tools");
  const built = createMeter("service_schema_size");
  const announced: Announced = { tools: [], unavailable: [], built: 0 };
  const taken = new Set<string>();
  for (const tool of tools) {
    const name = announcedName(definition.name, cleanText(tool.name.slice(0, 64)));
    built.add(tool.inputSchema.length + tool.outputSchema.length);
    const described = taken.has(name) ? "the name is used twice" : describeOne(definition, tool);
    taken.add(name);
    if (typeof described === "string") announced.unavailable.push({ tool: name, why: cleanText(described) });
    else announced.tools.push(described);
  }
  return { ...announced, built: built.sum };
}

/** The tool, or what is wrong with it. */
function describeOne(definition: AnnouncedTools, tool: Described): AnnouncedTool | string {
  const { name, scope: stated, defaultTimeout } = tool;
  const capabilities = tool.capabilities.length === 0 ? [name] : tool.capabilities;
  const scope = SCOPES.get(stated);
  if (!isToolName(name)) return "its name is no tool name";
  if (!capabilities.every(isToolName)) return "a capability has no proper name";
  if (scope === undefined) return "the scope is not stated or not known";
  if (tool.readOnly && tool.destructive) return "a tool without side effects cannot be destructive";
  try {
    const inputSchema = parseSchema(tool.inputSchema);
    const spec = announcedSpec(definition.name, {
      name,
      description: tool.description,
      capabilities,
      scope,
      method: "",
      annotations: {
        readOnly: tool.readOnly,
        destructive: tool.destructive,
        idempotent: tool.readOnly || tool.idempotent,
        openWorld: tool.openWorld,
      },
      defaultTimeoutMs: defaultTimeout === undefined ? DEFAULT_TIMEOUT_MS : Math.max(1, durationMs(defaultTimeout)),
      anyProgram: [],
      inputSchema,
      outputSchema: tool.outputSchema === "" ? { type: "object" } : parseSchema(tool.outputSchema),
      schemaDigest: "",
    });
    // What is checked is what callers see.
    const codec = jsonSchemaCodec(spec.inputSchema, checkSchema(spec.inputSchema));
    return { spec, codec, method: undefined, definition };
  } catch (error: unknown) {
    return error instanceof Error ? error.message : String(error);
  }
}

function parseSchema(text: string): JsonObject {
  if (text.length > LIMITS.schema_size) throw new LimitExceeded("schema_size");
  const schema: JsonValue = parseStrictJson(Buffer.from(text), { maxBytes: 4 * LIMITS.schema_size, maxKeys: 10_000 });
  if (jsonDepth(schema) > LIMITS.schema_depth) throw new LimitExceeded("schema_depth");
  const object = schemaAt(schema);
  if (object === undefined) throw new Error("its schema is no JSON object");
  return object;
}
