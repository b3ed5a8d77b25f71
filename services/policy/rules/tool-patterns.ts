/**
 * A test for a tool's name. A pattern is a name, or the beginning of one followed by "*"; no patterns match every tool.
 */
export function compileToolPatterns(patterns: readonly string[]): (tool: string) => boolean {
  if (patterns.length === 0) return () => true;
  const names = new Set(patterns.filter((pattern) => !pattern.endsWith("*")));
  const beginnings = patterns.filter((pattern) => pattern.endsWith("*")).map((pattern) => pattern.slice(0, -1));
  return (tool) => names.has(tool) || beginnings.some((beginning) => tool.startsWith(beginning));
}
