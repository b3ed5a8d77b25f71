import { create, type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, it } from "vitest";
import { Ingress } from "../../../gen/ts/reeve/common/v1/ingress_pb.ts";
import { Mode, SandboxLevel } from "../../../gen/ts/reeve/device/v1/device_pb.ts";
import { Role } from "../../../gen/ts/reeve/options/v1/access_pb.ts";
import { DecisionRequestSchema } from "../../../gen/ts/reeve/policy/v1/decision_pb.ts";
import type { CallAnalysis } from "../../../lib/command/call.ts";
import { compileExpression } from "../rules/expression.ts";
import { factsOf } from "./facts.ts";

const DISPLAY_ONLY = ["purpose", "principal.name", "preview.preview_id", "preview.facts", "preview.missing"];

/** Every field under the request, as an expression names it. */
function fieldsOf(message: DescMessage, path = ""): [string, DescField][] {
  return message.fields.flatMap((field): [string, DescField][] => {
    const name = path === "" ? field.name : `${path}.${field.name}`;
    const inner = field.fieldKind === "message" && field.message.file.proto.package.startsWith("reeve.");
    return inner ? fieldsOf(field.message, name) : [[name, field]];
  });
}

/** An expression that is of type bool only where the field has its own type. */
function typed(name: string, field: DescField): string {
  if (name === "arguments") return 'args.path == "/a"';
  if (field.fieldKind === "list") return field.message ? `${name}.exists(one, one.id == "")` : `"" in ${name}`;
  if (field.fieldKind === "map") return `"key" in ${name}`;
  if (field.message) return field.message.name === "Timestamp" ? `${name}.getHours() > 0` : `${name} > duration("1s")`;
  if (field.enum) return `${name} == "text"`;
  if (field.scalar === ScalarType.BOOL) return name;
  if (field.scalar === ScalarType.STRING) return `${name}.startsWith("a")`;
  return field.scalar === ScalarType.BYTES ? `${name} == b"a"` : `${name} > 1`;
}

describe("the facts that rules see", () => {
  it.each(fieldsOf(DecisionRequestSchema))(
    "hold %s with its type, or not at all what a caller states",
    (name, field) => {
      const compiled = compileExpression(typed(name, field));
      expect(compiled.ok ? "" : compiled.message).toMatch(
        DISPLAY_ONLY.includes(name) ? /Unknown variable|No such key/ : /^$/,
      );
    },
  );

  it("are what the request says, with enums by their names", () => {
    const request = create(DecisionRequestSchema, {
      callId: "c",
      principal: { id: "agent-1", name: "claimed", roles: [Role.AGENT] },
      device: {
        id: "dev-1",
        labels: { constructor: "x" },
        mode: Mode.SUDO,
        sandbox: SandboxLevel.READ_ONLY,
        roots: ["/srv"],
        platform: "linux/x64",
      },
      tool: { name: "fs.read", readOnly: true },
      ingress: Ingress.LLM,
      time: timestampFromMs(0),
      delivery: 2,
      purpose: "claimed",
    });
    const command: CallAnalysis = { verdict: "ask", reasons: [{ rule: "program/find", message: "m" }] };
    const facts = factsOf(request, { depth: 1, list: [null] }, command);
    const holds = (text: string) => {
      const compiled = compileExpression(text);
      return compiled.ok ? compiled.expression(facts) : compiled;
    };
    for (const text of [
      'call_id == "c" && principal.id == "agent-1" && principal.roles == ["agent"]',
      'device.mode == "sudo" && device.sandbox == "read_only" && device.roots == ["/srv"] && device.platform == "linux/x64"',
      'device.labels["constructor"] == "x" && !("toString" in device.labels)',
      'tool.name == "fs.read" && tool.read_only && !tool.destructive',
      'ingress == "llm" && time == timestamp("1970-01-01T00:00:00Z") && delivery == 2',
      'command.verdict == "ask" && command.rules == ["program/find"] && command.sandbox == "" && command.subject == ""',
      "args.depth + 1 == 2 && args.list[0] == null && devices == []",
    ]) {
      expect([text, holds(text)]).toEqual([text, { kind: "match" }]);
    }
  });
});
