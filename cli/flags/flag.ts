/** What one value of a flag is. */
export type FlagValue =
  | { readonly kind: "text" }
  /** A whole number. Beyond what a double holds it is sent as text, where the schema takes that. */
  | { readonly kind: "integer"; readonly orText: boolean }
  | { readonly kind: "number" }
  | { readonly kind: "switch" }
  /** One of these, by its whole or its short name. */
  | { readonly kind: "choice"; readonly choices: readonly Choice[] }
  /** Bytes: base64, or `@file`. */
  | { readonly kind: "bytes" }
  /** Anything that has no simple form: a JSON value. */
  | { readonly kind: "json" };

/** How often a flag is given, and what it makes of that. */
export type FlagShape = "one" | "list" | "map";

/** A value of an enum. */
export interface Choice {
  /** As the schema has it, such as "WRITE_MODE_REPLACE". */
  readonly value: string;
  /** Without what all values begin with, in small letters, such as "replace". */
  readonly short: string;
}

/** A flag for one property of a tool's input. */
export interface Flag {
  /** Without the dashes, such as "timeout-ms". */
  readonly name: string;
  /** The property, such as "timeoutMs". */
  readonly field: string;
  readonly shape: FlagShape;
  readonly value: FlagValue;
  readonly required: boolean;
  /** The property's description. */
  readonly description: string;
}
