export interface JsonLimits {
  /** Bytes of the whole document. Default 1 MiB. */
  maxBytes: number;
  /** Objects and arrays within each other. Default 32. */
  maxDepth: number;
  /** Keys of all objects together. Default 1000. */
  maxKeys: number;
}

/** A rule that a JSON document broke. */
export type JsonRule =
  | "max_bytes"
  | "max_depth"
  | "max_keys"
  | "syntax"
  | "utf8"
  | "bom"
  | "duplicate_key"
  | "reserved_key"
  | "surrogate"
  | "number_range"
  | "trailing_data";

/** The first thing that is wrong with a JSON document. */
export interface JsonViolation {
  /** Where, such as "params.argv[2]"; empty for the document itself. */
  field: string;
  /** The line, from 1, that the document was read up to; 1 for the document itself. */
  line: number;
  rule: JsonRule;
  /** For a person or a model. */
  message: string;
}

/** A container that is open while scanning. */
interface Frame {
  /** The keys seen so far, UTF-8 bytes as Latin-1 text; undefined in an array. */
  keys: Set<string> | undefined;
  /** The key whose value is being scanned. */
  key: string;
  /** The index of the element being scanned. */
  index: number;
}

/** Where a scan has come to. Not for use outside the scanner and its caller. */
export interface Scan {
  /** The document's bytes as Latin-1 text: one character a byte. Reading it is several times faster than slicing bytes. */
  readonly text: string;
  readonly limits: JsonLimits;
  at: number;
  keys: number;
  readonly open: Frame[];
  problem: { rule: JsonRule; message: string } | undefined;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;
const OPEN_ARRAY = 0x5b;
const CLOSE_ARRAY = 0x5d;
const COMMA = 0x2c;
const COLON = 0x3a;
const MINUS = 0x2d;
const LITERALS = ["true", "false", "null"];

/**
 * Scans one RFC 8259 document that is valid UTF-8, in one pass, without recursion and without building values.
 * False: `scan.problem` and `scan.open` say what is wrong and where.
 */
export function scanDocument(scan: Scan): boolean {
  do {
    if (!scanValue(scan)) return false;
  } while (nextValue(scan));
  if (scan.problem !== undefined) return false;
  skipSpace(scan);
  return scan.at === scan.text.length || fail(scan, "trailing_data", "there is more data after the document");
}

/** Scans a scalar, or the way into a container down to its first scalar or empty container. */
function scanValue(scan: Scan): boolean {
  for (;;) {
    skipSpace(scan);
    const byte = scan.text.charCodeAt(scan.at);
    if (byte === QUOTE) return scanString(scan);
    if (byte !== OPEN_OBJECT && byte !== OPEN_ARRAY) return scanAtom(scan, byte);
    if (!openContainer(scan, byte === OPEN_OBJECT)) return false;
    skipSpace(scan);
    const isEmpty = scan.text.charCodeAt(scan.at) === (byte === OPEN_OBJECT ? CLOSE_OBJECT : CLOSE_ARRAY);
    if (isEmpty) return true; // nextValue closes it
    if (byte === OPEN_OBJECT && !scanKey(scan)) return false;
  }
}

/** Goes on after a value: true where another value must follow. */
function nextValue(scan: Scan): boolean {
  for (let frame = scan.open.at(-1); frame !== undefined; frame = scan.open.at(-1)) {
    skipSpace(scan);
    const byte = scan.text.charCodeAt(scan.at++);
    if (byte === COMMA) {
      frame.index++;
      if (frame.keys === undefined) return true;
      skipSpace(scan);
      return scanKey(scan);
    }
    if (byte !== (frame.keys === undefined ? CLOSE_ARRAY : CLOSE_OBJECT)) {
      return fail(scan, "syntax", `expected "," or the end of the ${frame.keys === undefined ? "array" : "object"}`);
    }
    scan.open.pop();
  }
  return false;
}

function openContainer(scan: Scan, isObject: boolean): boolean {
  const { maxDepth } = scan.limits;
  if (scan.open.length >= maxDepth) return fail(scan, "max_depth", `nested deeper than ${maxDepth} levels`);
  scan.open.push({ keys: isObject ? new Set() : undefined, key: "", index: 0 });
  scan.at++;
  return true;
}

function scanKey(scan: Scan): boolean {
  if (scan.text.charCodeAt(scan.at) !== QUOTE) return fail(scan, "syntax", "expected a key in double quotes");
  const start = scan.at + 1;
  const frame = scan.open.at(-1);
  if (!scanString(scan) || frame?.keys === undefined) return false;
  const raw = scan.text.slice(start, scan.at - 1);
  const key = raw.includes("\\") ? latin1(JSON.parse(`"${utf8(raw)}"`)) : raw;
  frame.key = key;
  if (++scan.keys > scan.limits.maxKeys) return fail(scan, "max_keys", `more than ${scan.limits.maxKeys} keys`);
  if (key === "__proto__") return fail(scan, "reserved_key", "this key is not allowed");
  const before = frame.keys.size;
  if (frame.keys.add(key).size === before) return fail(scan, "duplicate_key", "this key occurs twice");
  skipSpace(scan);
  return scan.text.charCodeAt(scan.at++) === COLON || fail(scan, "syntax", `expected ":" after the key`);
}

/** Scans a string and ends behind its closing quote. */
function scanString(scan: Scan): boolean {
  const { text } = scan;
  const start = scan.at;
  let isEscaped = false;
  for (let at = start + 1; at < text.length; at++) {
    const byte = text.charCodeAt(at);
    if (byte === QUOTE) {
      scan.at = at + 1;
      return !isEscaped || checkEscapes(scan, text.slice(start, scan.at));
    }
    if (byte === BACKSLASH) {
      isEscaped = true;
      at++;
    } else if (byte < 0x20) return fail(scan, "syntax", "a control character in a string must be escaped");
  }
  return fail(scan, "syntax", "a string does not end");
}

/** JSON.parse knows the escapes; what it lets through and UTF-8 cannot say is a surrogate without its other half. */
function checkEscapes(scan: Scan, quoted: string): boolean {
  const text = parsed(quoted);
  if (typeof text !== "string") return fail(scan, "syntax", "a string has an escape that JSON does not know");
  return text.isWellFormed() || fail(scan, "surrogate", "a string has half of a surrogate pair");
}

/** A number or one of the three words. */
function scanAtom(scan: Scan, byte: number): boolean {
  if (scan.at >= scan.text.length) return fail(scan, "syntax", "the document ends too early");
  if (byte === MINUS || (byte >= 0x30 && byte <= 0x39)) return scanNumber(scan);
  const literal = LITERALS.find((word) => scan.text.startsWith(word, scan.at));
  if (literal === undefined) return fail(scan, "syntax", "this is not a JSON value");
  scan.at += literal.length;
  return true;
}

const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;
const PLAIN_DIGITS = 16;

function scanNumber(scan: Scan): boolean {
  const start = scan.at;
  let at = start + 1;
  let isPlain = scan.text.charCodeAt(start) > 0x30;
  for (; at < scan.text.length; at++) {
    const byte = scan.text.charCodeAt(at);
    if (byte >= 0x30 && byte <= 0x39) continue;
    if (!isNumberMark(byte)) break;
    isPlain = false;
  }
  scan.at = at;
  if (isPlain && at - start < PLAIN_DIGITS) return true;
  const text = scan.text.slice(start, at);
  if (!NUMBER.test(text)) return fail(scan, "syntax", "this is not a JSON number");
  return Number.isFinite(Number(text)) || fail(scan, "number_range", "this number is too large");
}

function isNumberMark(byte: number): boolean {
  return byte === 0x2e || byte === 0x2b || byte === MINUS || byte === 0x65 || byte === 0x45;
}

function skipSpace(scan: Scan): void {
  let byte = scan.text.charCodeAt(scan.at);
  while (byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09) byte = scan.text.charCodeAt(++scan.at);
}

function utf8(bytes: string): string {
  return Buffer.from(bytes, "latin1").toString();
}

function latin1(text: string): string {
  return Buffer.from(text).toString("latin1");
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function fail(scan: Scan, rule: JsonRule, message: string): false {
  scan.problem = { rule, message };
  return false;
}

/** The path of what is being scanned. Keys that are no plain word are quoted; a long path is cut. */
export function pathOf(scan: Scan): string {
  let path = "";
  for (const frame of scan.open) {
    path += frame.keys === undefined ? `[${frame.index}]` : keyStep(utf8(frame.key), path === "");
    if (path.length > MAX_PATH) return `${path.slice(0, MAX_PATH)}…`;
  }
  return path;
}

const MAX_PATH = 200;

function keyStep(key: string, isFirst: boolean): string {
  if (key === "") return "";
  if (!/^[\w$-]+$/u.test(key)) return `[${JSON.stringify(key)}]`;
  return isFirst ? key : `.${key}`;
}
