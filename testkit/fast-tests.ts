import { globSync, readFileSync } from "node:fs";
import { join, posix } from "node:path";
import { importsOf } from "../scripts/import-directions/imports.ts";

/** Modules by which a process, a thread or a server is started. */
const STARTERS = /^(?:node:)?(?:child_process|worker_threads|https?|http2)$|^(?:nats|oidc-provider|@grpc\/grpc-js)$/;

/**
 * The test files, of those that the pattern matches, that load nothing by which a process or a server is started,
 * directly or through what they import.
 */
export function fastTests(root: string, pattern: string): string[] {
  const known = new Map<string, Loaded>();
  const load = (path: string): Loaded => {
    const loaded = known.get(path) ?? loadedBy(root, path);
    known.set(path, loaded);
    return loaded;
  };
  const isFast = (test: string): boolean => {
    const seen = new Set([test]);
    for (const path of seen) {
      const { starts, files } = load(path);
      if (starts) return false;
      for (const file of files) seen.add(file);
    }
    return true;
  };
  return globSync(pattern, { cwd: root, exclude: ["**/node_modules/**"] }).filter(isFast);
}

/** What one file loads itself. */
interface Loaded {
  starts: boolean;
  files: readonly string[];
}

function loadedBy(root: string, path: string): Loaded {
  if (!path.endsWith(".ts")) return { starts: false, files: [] };
  const text = readFileSync(join(root, path), "utf8");
  const imports = importsOf(text).filter(({ typeOnly }) => !typeOnly);
  const opensSockets = /\b(?:createServer|createConnection|connect)\(/.test(text);
  return {
    starts: imports.some(({ specifier }) => STARTERS.test(specifier) || (opensSockets && specifier === "node:net")),
    files: imports
      .filter(({ specifier }) => specifier.startsWith("."))
      .map(({ specifier }) => posix.join(posix.dirname(path), specifier)),
  };
}
