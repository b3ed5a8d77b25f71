/** What is left of a list of tools, with warnings for the author of the allow list. */
export interface Narrowed<T> {
  tools: readonly T[];
  warnings: readonly string[];
}

/**
 * Cuts tools down to an allow list. An empty list keeps everything. A name that no tool has is dropped with a warning,
 * so that one configuration can serve devices that differ.
 */
export function narrowTools<T extends { name: string }>(tools: readonly T[], allowed: readonly string[]): Narrowed<T> {
  if (allowed.length === 0) return { tools, warnings: [] };
  const wanted = new Set(allowed);
  const known = new Set(tools.map((tool) => tool.name));
  const unknown = [...wanted].filter((name) => !known.has(name));
  return {
    tools: tools.filter((tool) => wanted.has(tool.name)),
    warnings: unknown.map((name) => `tools_allowed lists unknown tool ${JSON.stringify(name)}: dropped`),
  };
}
