import { compileSource, descriptorSetOf, withoutComments } from "./printer.ts";

/** The service that all of these define. */
export const HOSTILE_SERVICE = "acme.printer.v1.Hostile";

const HEAD = `syntax = "proto3";
package acme.printer.v1;
import "buf/validate/validate.proto";
import "reeve/options/v1/tool.proto";
`;

/** A service of annotated RPCs, each of which takes the message In and returns it. */
function serviceOf(rpcs: number): string {
  const list = Array.from(
    { length: rpcs },
    (_, at) =>
      `rpc R${at}(In) returns (In) { option (reeve.options.v1.tool) = { name: "r${at}" capabilities: ["r${at}"] scope: SCOPE_USER }; }`,
  );
  return `service Hostile {\n${list.join("\n")}\n}\n`;
}

/** Fields that all have one enum: each field's schema would repeat all of its values. A few tens of kilobytes. */
export function manyEnumFields(fields: number, values: number, rpcs: number): string {
  const names = Array.from({ length: values }, (_, at) => `V${at} = ${at};`);
  const list = Array.from({ length: fields }, (_, at) => `E f${at} = ${at + 1};`);
  return `${HEAD}${serviceOf(rpcs)}enum E {\n${names.join("\n")}\n}\nmessage In {\n${list.join("\n")}\n}\n`;
}

/**
 * Messages that hold each other, each with a rule: the ways through them are exponential in their number.
 *
 * @param next the messages that the one at a place holds.
 */
export function linkedMessages(count: number, next: (at: number) => readonly number[], rpcs = 1): string {
  const messages = Array.from({ length: count }, (_, at) => {
    const held = next(at).map((to, place) => `M${to} h${place} = ${place + 2};`);
    return `message M${at} {\nstring s = 1 [(buf.validate.field).string.min_len = 1];\n${held.join("\n")}\n}`;
  });
  return `${HEAD}${serviceOf(rpcs)}message In { M0 m = 1; }\n${messages.join("\n")}\n`;
}

/** 600 messages, each of which holds fifteen others. */
export function denseMessages(): string {
  return linkedMessages(600, (at) => Array.from({ length: 15 }, (_, step) => (at * 7 + step * 37 + 1) % 600));
}

/** A few kilobytes: each message holds all that come after it. */
export function smallDenseMessages(): string {
  return linkedMessages(30, (at) => Array.from({ length: 29 - at }, (_, step) => at + step + 1));
}

/** A tool whose input is this one message. */
export function messageOf(body: string): string {
  return `${HEAD}${serviceOf(1)}message In {\n${body}\n}\n`;
}

/** The descriptors of a source, as a device announces them that was asked by server reflection. */
export async function hostileDescriptors(source: string): Promise<Uint8Array> {
  return descriptorSetOf(withoutComments(await compileSource(source)));
}
