import type { JsonObject } from "@bufbuild/protobuf";
import type { InputProblem } from "../fault/invalid-input.ts";
import type { ToolSpec } from "./spec.ts";

/** An input that holds to its schema, or what is wrong with it. */
export type Parsed<Input> = { ok: true; input: Input } | { ok: false; problems: readonly InputProblem[] };

/**
 * Reads a tool's input, whatever its schema is written in. Two parties that parse with the codec of one schema agree on
 * what is valid and on its bytes.
 */
export interface Codec<Input = unknown> {
  /** Checks arguments against the schema. What the schema does not know is a problem, not dropped. Pure. */
  parse(args: JsonObject): Parsed<Input>;
  /** The one JSON form of an input: whatever means the same gives the same. */
  toJson(input: Input): JsonObject;
}

/** A tool's contract: what it is, and how its input is read. */
export interface Tool {
  spec: ToolSpec;
  codec: Codec;
}
