import { allUses, type Use } from "../words/uses.ts";

/** Every use of a retired word, as a line that an editor can jump to. */
export async function retiredWords(): Promise<string[]> {
  return (await allUses()).map(useText);
}

/** One use in words. */
export function useText({ path, line, word, better }: Use): string {
  return `${path}${line === 0 ? "" : `:${line}`}: "${word}" → ${better}`;
}
