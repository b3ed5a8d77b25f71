const ESCAPES: Readonly<Record<string, string>> = { n: "\n", t: "\t", r: "\r", e: "\x1b", a: "\x07" };

/** The text that bash's $'...' stands for. */
export function ansiText(text: string): string {
  const pattern = /\\(?:x(?<hex>[0-9a-fA-F]{1,2})|u(?<code>[0-9a-fA-F]{1,4})|(?<octal>[0-7]{1,3})|(?<char>.))/gs;
  return text.replace(pattern, (...found) => {
    const { hex, code, octal, char } = found.at(-1) as Record<string, string | undefined>;
    if (hex !== undefined || code !== undefined) return String.fromCharCode(Number.parseInt(hex ?? code ?? "", 16));
    if (octal !== undefined) return String.fromCharCode(Number.parseInt(octal, 8) & 255);
    return ESCAPES[char ?? ""] ?? char ?? "";
  });
}

/** The place of the closing character, past escapes and, for a parenthesis, past quotes and inner pairs. */
export function closing(text: string, from: number, close: "'" | "`" | ")"): number {
  let depth = 0;
  let quote = "";
  for (let at = from; at < text.length; at++) {
    const char = text[at] ?? "";
    if (char === "\\" && quote !== "'") at += 1;
    else if (quote !== "") quote = char === quote ? "" : quote;
    else if (char === close && depth === 0) return at;
    else if (close !== ")") continue;
    else if (char === "'" || char === '"') quote = char;
    else if (char === "(") depth += 1;
    else if (char === ")") depth -= 1;
  }
  return text.length;
}
