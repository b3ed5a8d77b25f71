import { formatVkey, type NoteKey, parseVkey } from "./note.ts";

/** More keys than this no log has had. */
const MAX_KEYS = 1024;

/** The verifier keys of one log as text, one a line, without a newline at the end. */
export function formatVkeys(keys: readonly NoteKey[]): string {
  return keys.map(formatVkey).join("\n");
}

/**
 * Reads verifier keys, one a line; empty lines and white space around them do not count. Undefined unless there is at
 * least one, every line is a key, and all have the same name: that of the log.
 */
export function parseVkeys(text: string): [NoteKey, ...NoteKey[]] | undefined {
  const lines = text.split("\n", MAX_KEYS + 1).flatMap((line) => line.trim() || []);
  const [first, ...more] = lines.map(parseVkey);
  const all = [first, ...more];
  if (first === undefined || lines.length > MAX_KEYS || !all.every((key) => key?.name === first.name)) return undefined;
  return all as [NoteKey, ...NoteKey[]];
}
