import { isUtf8 } from "node:buffer";
import { TextEncoding } from "../../../../gen/ts/reeve/tools/v1/file_system_pb.ts";

/** How bytes stand for text, as people write it. */
export type Encoding = "UTF-8" | "UTF-16LE" | "UTF-16BE" | "Latin-1";

/** An encoding, and the byte order mark that a file begins with. */
export interface TextForm {
  encoding: Encoding;
  mark: Uint8Array;
}

const NAMED: ReadonlyMap<number, Encoding> = new Map<number, Encoding>([
  [TextEncoding.UTF16LE, "UTF-16LE"],
  [TextEncoding.UTF16BE, "UTF-16BE"],
  [TextEncoding.LATIN1, "Latin-1"],
]);

const MARKS: readonly TextForm[] = [
  { encoding: "UTF-8", mark: Uint8Array.of(0xef, 0xbb, 0xbf) },
  { encoding: "UTF-16LE", mark: Uint8Array.of(0xff, 0xfe) },
  { encoding: "UTF-16BE", mark: Uint8Array.of(0xfe, 0xff) },
];

const NO_MARK = new Uint8Array();

/** The encoding that a caller names. Default UTF-8. */
export function encodingOf(named: TextEncoding): Encoding {
  return NAMED.get(named) ?? "UTF-8";
}

/** The form that a byte order mark states; else the encoding that is given. */
export function formOf(start: Uint8Array, encoding: Encoding): TextForm {
  const marked = MARKS.find(({ mark }) => mark.every((byte, at) => start[at] === byte));
  return marked ?? { encoding, mark: NO_MARK };
}

/** The text of bytes without a byte order mark. Undefined where they are no valid text in that encoding. */
export function decodeText(bytes: Buffer, encoding: Encoding): string | undefined {
  switch (encoding) {
    case "UTF-8":
      return isUtf8(bytes) ? bytes.toString("utf8") : undefined;
    case "Latin-1":
      return bytes.toString("latin1");
    case "UTF-16LE":
      return wellFormed(bytes);
    case "UTF-16BE":
      return bytes.length % 2 === 0 ? wellFormed(Buffer.from(bytes).swap16()) : undefined;
  }
}

/** The bytes of a text. Undefined where the encoding has no such character. */
export function encodeText(text: string, encoding: Encoding): Buffer | undefined {
  if (!text.isWellFormed()) return undefined;
  switch (encoding) {
    case "UTF-8":
      return Buffer.from(text, "utf8");
    case "Latin-1": {
      const bytes = Buffer.from(text, "latin1");
      return bytes.toString("latin1") === text ? bytes : undefined;
    }
    case "UTF-16LE":
      return Buffer.from(text, "utf16le");
    case "UTF-16BE":
      return Buffer.from(text, "utf16le").swap16();
  }
}

/** Whether each character is two bytes or more, so that a slice has to begin and end between two. */
export function isWide(encoding: Encoding): boolean {
  return encoding === "UTF-16LE" || encoding === "UTF-16BE";
}

function wellFormed(bytes: Buffer): string | undefined {
  const text = bytes.length % 2 === 0 ? bytes.toString("utf16le") : undefined;
  return text?.isWellFormed() ? text : undefined;
}
