import { ansiText, closing } from "./shell-quotes.ts";

/** One simple command of a shell text. */
export interface ShellCommand {
  /** Its words without quotes. Variables and globs stand as they were written. */
  words: string[];
  /** The files that its redirections write. */
  writes: string[];
  /** The literal text it reads, from a here-document or here-string. */
  stdin?: string;
  /** What stands behind it. */
  next: "|" | "&" | "";
  /** The function whose body it is in. */
  inFunction?: string;
}

/** What a look at a shell text found. */
export interface ShellScan {
  /** All simple commands, those of substitutions too, in the order of their ends. */
  commands: ShellCommand[];
  /** True when something is nested too deep to be looked at. */
  tooDeep: boolean;
}

/** How deep substitutions may be nested. */
const DEEPEST = 12;

/**
 * Cuts a shell text into simple commands: quotes, escapes, comments, separators, redirections, here-documents,
 * substitutions. No grammar: an unfinished or wrong text gives what can be seen in it. It serves a seat belt, which may
 * look too closely but must not be fooled by spelling.
 */
export function scanShell(text: string): ShellScan {
  const scan: ShellScan = { commands: [], tooDeep: false };
  scanInto(scan, text, 0);
  return scan;
}

interface Cursor {
  readonly scan: ShellScan;
  readonly text: string;
  readonly depth: number;
  at: number;
  command: ShellCommand;
  word: string | undefined;
  /** What the next word is for, after a redirection. */
  redirect: "write" | "read" | "here" | "string" | undefined;
  functionName: string | undefined;
  braces: number;
  /** Here-documents whose text begins after this line. */
  here: { owner: ShellCommand; end: string }[];
}

function scanInto(scan: ShellScan, text: string, depth: number): void {
  if (depth > DEEPEST) {
    scan.tooDeep = true;
    return;
  }
  const rest = { word: undefined, redirect: undefined, functionName: undefined, braces: 0, here: [] };
  const cursor: Cursor = { scan, text, depth, at: 0, command: emptyCommand(), ...rest };
  const readers = [quoted, substitution, blank, functionHead, redirection, separator, brace];
  while (cursor.at < text.length) {
    if (readers.some((read) => read(cursor))) continue;
    add(cursor, text[cursor.at] ?? "");
    cursor.at += 1;
  }
  endCommand(cursor, "");
}

function quoted(cursor: Cursor): boolean {
  const { text, at } = cursor;
  const char = text[at];
  if (char === "\\") {
    if (text[at + 1] !== "\n") add(cursor, text[at + 1] ?? "");
    cursor.at += 2;
  } else if (char === "'" || text.startsWith("$'", at)) {
    const start = char === "'" ? at + 1 : at + 2;
    const end = char === "'" ? indexOrEnd(text, "'", start) : closing(text, start, "'");
    const inner = text.slice(start, end);
    add(cursor, char === "'" ? inner : ansiText(inner));
    cursor.at = end + 1;
  } else if (char === '"' || text.startsWith('$"', at)) doubleQuoted(cursor);
  else return false;
  return true;
}

function doubleQuoted(cursor: Cursor): void {
  const { text } = cursor;
  add(cursor, "");
  cursor.at = text.indexOf('"', cursor.at) + 1;
  while (cursor.at < text.length && text[cursor.at] !== '"') {
    const next = text[cursor.at + 1] ?? "";
    if (text[cursor.at] === "\\") {
      if (next !== "\n") add(cursor, /[$`"\\]/.test(next) ? next : `\\${next}`);
      cursor.at += 2;
    } else if (text.startsWith("<(", cursor.at) || text.startsWith(">(", cursor.at) || !substitution(cursor)) {
      add(cursor, text[cursor.at] ?? "");
      cursor.at += 1;
    }
  }
  cursor.at += 1;
}

function substitution(cursor: Cursor): boolean {
  const { text, at } = cursor;
  const tick = text[at] === "`";
  if (!tick && !/^[$<>]\(/.test(text.slice(at, at + 2))) return false;
  const start = tick ? at + 1 : at + 2;
  const end = closing(text, start, tick ? "`" : ")");
  const inner = text.slice(start, end);
  scanInto(cursor.scan, tick ? inner.replace(/\\([`\\$])/g, "$1") : inner, cursor.depth + 1);
  // Stands for the unknown result: never equal to a name or path.
  add(cursor, "\u0001");
  cursor.at = end + 1;
  return true;
}

function blank(cursor: Cursor): boolean {
  const char = cursor.text[cursor.at];
  if (char === "#" && cursor.word === undefined) cursor.at = indexOrEnd(cursor.text, "\n", cursor.at);
  else if (char === " " || char === "\t" || char === "\r") {
    endWord(cursor);
    cursor.at += 1;
  } else return false;
  return true;
}

function functionHead(cursor: Cursor): boolean {
  // "(){:" is no bash, but its meaning is plain.
  const head = /^\(\s*\)(?:\s*\{)?/.exec(cursor.text.slice(cursor.at, cursor.at + 64));
  if (head === null) return false;
  endWord(cursor);
  beginFunction(cursor, head[0].endsWith("{") ? 1 : 0);
  cursor.at += head[0].length;
  return true;
}

function beginFunction(cursor: Cursor, braces: number): void {
  cursor.functionName ??= cursor.command.words.at(-1);
  cursor.command = emptyCommand();
  cursor.braces += braces;
}

function redirection(cursor: Cursor): boolean {
  const operator = /^(?:&>>?|<<<|<<-?|>>|>\||>&|<>|<&|>|<)/.exec(cursor.text.slice(cursor.at, cursor.at + 3))?.[0];
  if (operator === undefined) return false;
  if (cursor.word !== undefined && /^\d+$/.test(cursor.word)) cursor.word = undefined;
  endWord(cursor);
  if (operator === "<<<") cursor.redirect = "string";
  else if (operator.startsWith("<<")) cursor.redirect = "here";
  else cursor.redirect = operator.includes(">") ? "write" : "read";
  cursor.at += operator.length;
  return true;
}

function separator(cursor: Cursor): boolean {
  const operator = /^(?:&&|\|\||\|&|;;|[;|&\n()])/.exec(cursor.text.slice(cursor.at, cursor.at + 2))?.[0];
  if (operator === undefined) return false;
  endCommand(cursor, operator === "|" || operator === "|&" ? "|" : operator === "&" ? "&" : "");
  cursor.at += operator.length;
  if (operator === "\n") hereBodies(cursor);
  return true;
}

function brace(cursor: Cursor): boolean {
  const char = cursor.text[cursor.at];
  if (cursor.word !== undefined) return false;
  if (char === "{" && /\s/.test(cursor.text[cursor.at + 1] ?? " ")) {
    if (cursor.command.words[0] === "function") beginFunction(cursor, 0);
    endCommand(cursor, "");
    cursor.braces += 1;
  } else if (char === "}") {
    endCommand(cursor, "");
    cursor.braces -= 1;
    if (cursor.braces <= 0) cursor.functionName = undefined;
  } else return false;
  cursor.at += 1;
  return true;
}

function hereBodies(cursor: Cursor): void {
  for (const { owner, end } of cursor.here.splice(0)) {
    const lines: string[] = [];
    while (cursor.at < cursor.text.length) {
      const stop = indexOrEnd(cursor.text, "\n", cursor.at);
      const line = cursor.text.slice(cursor.at, stop);
      cursor.at = stop + 1;
      if (line.replace(/^\t+/, "") === end) break;
      lines.push(line);
    }
    owner.stdin = lines.join("\n");
  }
}

function add(cursor: Cursor, part: string): void {
  cursor.word = (cursor.word ?? "") + part;
}

function endWord(cursor: Cursor): void {
  const { word, redirect, command } = cursor;
  if (word === undefined) return;
  if (redirect === "write") command.writes.push(word);
  else if (redirect === "here") cursor.here.push({ owner: command, end: word });
  else if (redirect === "string") command.stdin = word;
  else if (redirect === undefined) command.words.push(word);
  cursor.word = cursor.redirect = undefined;
}

function endCommand(cursor: Cursor, next: ShellCommand["next"]): void {
  endWord(cursor);
  const { command, functionName } = cursor;
  command.next = next;
  if (functionName !== undefined) command.inFunction = functionName;
  if (command.words.length > 0 || command.writes.length > 0) cursor.scan.commands.push(command);
  cursor.command = emptyCommand();
  cursor.redirect = undefined;
}

function emptyCommand(): ShellCommand {
  return { words: [], writes: [], next: "" };
}

function indexOrEnd(text: string, part: string, from: number): number {
  const at = text.indexOf(part, from);
  return at < 0 ? text.length : at;
}
