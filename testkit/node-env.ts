import { join } from "node:path";

/**
 * What a process of this repository gets besides the environment that a test gives it: the machine's PATH, and a cache
 * that keeps Node from compiling the same files for each process.
 */
export function nodeEnv(): Record<string, string> {
  return {
    PATH: process.env.PATH ?? "",
    NODE_COMPILE_CACHE: join(import.meta.dirname, "..", "node_modules", ".cache", "node-compile"),
  };
}
