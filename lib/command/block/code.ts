import { LIMITS } from "../limits.ts";

/** What a program in another language would run. */
export interface CodeScript {
  /** A shell text. */
  text?: string;
  /** A program and its arguments. */
  argv?: string[];
  /** The id of a rule that the code itself matches. */
  shape?: string;
}

/** Words that stand where a program runs another. */
const RUNS =
  /\b(?:system|exec[lv]?[pe]{0,2}|exec(?:File)?(?:Sync)?|popen|spawn(?:Sync|v[pe]*|l[pe]*)?|call|check_(?:call|output)|run|getoutput|shell_exec|do shell script|passthru|proc_open|qx|Popen|os\.cmd|execute|startfile|IO\.popen|child_process|subprocess)\b|`/;

/** Functions that delete a tree, and the path that they are given. */
const DELETES =
  /\b(?:rmtree|removeTree|remove_tree|rm_rf|rm_r|rimraf|removeSync|emptyDirSync|rmSync|rmdirSync|remove_dir_all|fs\.rm|FileUtils\.rm\w*|shutil\.rmtree)\s*\(?\s*(["'])((?:(?!\1)[^\\]|\\.)*)\1/g;

/** Loops that make processes without end. */
const FORKS =
  /fork\s*(?:\(\s*\))?\s*(?:while\b|until\b)|(?:while|loop|for)\b[^\n]{0,24}?[\s({:]\s*(?:[\w.()"']{0,40}[._])?fork\b|while\s*\(?\s*(?:1|true|True)\s*\)?\s*[:{]?\s*[^\n;]{0,40}\bfork\b|(?:os\.)?fork\s*\(\)\s*(?:;|\n)\s*(?:os\.)?fork\s*\(\)/;

/** A call that kills every process, or stops the machine. */
const ENDS = /\bos\.kill\s*\(\s*(?:-1|1)\s*,|\bkill\s*\(?\s*(?:["']?KILL["']?|9|["']?TERM["']?)\s*,\s*-?1\b/;

/** Opens a file for writing. */
const OPENS =
  /\b(?:open|writeFileSync|writeFile|truncate|truncateSync|file_put_contents|File\.write|IO\.write)\s*\(\s*(["'])(\/[^"']+)\1\s*(?:,\s*["']([^"']*)["'])?/g;

/** The commands in the code of another language: the texts that stand near a word that runs programs. */
export function scriptsInCode(source: string, depth = 0): CodeScript[] {
  if (source === "" || source.length > LIMITS.bytes) return [];
  const code = source.replace(/(["'])\s*[+.]\s*\1/g, "");
  const found: CodeScript[] = [];
  if (FORKS.test(code)) found.push({ shape: "fork-bomb" });
  if (ENDS.test(code)) found.push({ argv: ["kill", "-9", "-1"] });
  for (const match of code.matchAll(DELETES)) found.push({ argv: ["rm", "-rf", match[2] ?? ""] });
  for (const match of code.matchAll(OPENS)) {
    const [call = "", , path = "", mode = "r"] = match;
    if (!call.startsWith("open") || /[w+]/.test(mode)) found.push({ text: `: > '${path}'` });
  }
  const redirected = /\bprint\b[^|}]*>\s*"(\/[^"]+)"/.exec(code);
  if (redirected?.[1] !== undefined) found.push({ text: `: > '${redirected[1]}'` });
  if (!RUNS.test(code)) return found;
  const literals = literalsOf(code);
  if (depth < 2) for (const text of literals) found.push(...scriptsInCode(text, depth + 1));
  for (const text of literals) found.push(...hiddenTexts(text).map((hidden) => ({ text: hidden })));
  for (const match of code.matchAll(/\b(?:exec|spawn)\s+([a-z/][^;\n"'(\]]*)/g)) found.push({ text: match[1] ?? "" });
  for (const list of code.matchAll(/[[(]\s*((?:["'][^"'\n]*["']\s*,\s*)+["'][^"'\n]*["'])\s*,?\s*[\])]/g)) {
    found.push({ argv: literalsOf(list[1] ?? "") });
  }
  for (const text of [
    ...literals,
    ...[...code.matchAll(/`([^`]+)`|qx[{(/]([^})/]+)/g)].map((match) => match[1] ?? match[2] ?? ""),
  ]) {
    if (text.length > 2) found.push({ text });
  }
  // `system "rm", "-rf", "/"` and %w lists.
  for (const list of code.matchAll(
    /\b(?:system|exec|spawn\w*)\b\s*\(?\s*((?:["'][^"'\n]*["']\s*,\s*)+["'][^"'\n]*["'])/g,
  )) {
    found.push({ argv: literalsOf(list[1] ?? "") });
  }
  // `spawn("rm", ["-rf", "/"])`
  for (const call of code.matchAll(/\(\s*(["'][^"'\n]*["'])\s*,\s*\[((?:\s*["'][^"'\n]*["']\s*,?)+)\]/g)) {
    found.push({ argv: [...literalsOf(call[1] ?? ""), ...literalsOf(call[2] ?? "")] });
  }
  return found;
}

/** What a literal stands for as base64 or as hexadecimal digits, where that is plain text. */
function hiddenTexts(text: string): string[] {
  const decoded = [
    ...(/^[A-Za-z0-9+/]{8,}={0,2}$/.test(text) ? [Buffer.from(text, "base64")] : []),
    ...(/^(?:[0-9a-fA-F]{2}){4,}$/.test(text) ? [Buffer.from(text, "hex")] : []),
  ];
  return decoded.map((bytes) => bytes.toString("latin1")).filter((plain) => /^[\t\n\x20-\x7e]+$/.test(plain));
}

function literalsOf(code: string): string[] {
  return [...code.matchAll(/(["'])((?:(?!\1)[^\\]|\\[\s\S])*)\1/g)].map((match) =>
    (match[2] ?? "")
      .replace(/\\(["'\\])/g, "$1")
      .replace(/\\x([0-9a-fA-F]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16))),
  );
}
