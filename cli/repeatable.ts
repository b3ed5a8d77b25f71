/** Collects the values of an option that can be repeated, for commander. */
export function gather(value: string, before: readonly string[]): string[] {
  return [...before, value];
}
