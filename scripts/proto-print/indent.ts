/** The lines, each two spaces deeper. */
export function indent(lines: readonly string[]): string[] {
  return lines.map((line) => `  ${line}`);
}

/** A declaration with a body in braces. */
export function block(head: string, body: readonly string[]): string[] {
  return [`${head} {`, ...indent(body), "}"];
}
