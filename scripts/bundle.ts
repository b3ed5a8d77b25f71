import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { type Plugin, rolldown } from "rolldown";
import { repositoryRoot } from "./repository-root.ts";

/** Programs, by the path in dist/ without its extension, which is the source's. */
const PROGRAMS = ["cli/main", "services/device-agent/executor/spawner-main"];

/** What programs of others import. */
const LIBRARIES = ["client/index", "client/web"];

/** Packages that every short command loads. All others stay beside the bundle: some load files of their own. */
const INLINE = /^(@connectrpc\/|@bufbuild\/(?!re2)|commander$)/;

/**
 * Bundles the programs and the libraries into `target`. Loading a module costs more than running it, so that a command in one
 * piece takes half the processor time of one in 250. The libraries share their packages with the program that imports them.
 */
export async function bundle(target: string): Promise<void> {
  await write(target, PROGRAMS, (id) => isPackage(id) && !INLINE.test(id));
  await write(target, LIBRARIES, isPackage);
}

async function write(target: string, entries: readonly string[], external: (id: string) => boolean): Promise<void> {
  const input = Object.fromEntries(entries.map((entry) => [entry, join(repositoryRoot, `${entry}.ts`)]));
  await using build = await rolldown({ input, external, platform: "node", plugins: [ownPlace()] });
  await build.write({
    dir: target,
    format: "esm",
    entryFileNames: "[name].js",
    chunkFileNames: "chunks/[name]-[hash].js",
    // A stack trace in a report has to name functions.
    minify: { compress: true, mangle: false, codegen: { removeWhitespace: true } },
  });
}

/** A name, and no path: of a package, or of a module of Node. */
function isPackage(id: string): boolean {
  return !id.startsWith(".") && !id.startsWith("/");
}

/** A module that looks for files beside it finds them beside where it would lie in dist/, and not beside its chunk. */
function ownPlace(): Plugin {
  const root = pathToFileURL(`${repositoryRoot}/`).href;
  return {
    name: "own-place",
    transform(code, id) {
      const url = pathToFileURL(id).href;
      if (id.includes("/node_modules/") || !url.startsWith(root) || !code.includes("import.meta.url")) return null;
      const place = url.slice(root.length).replace(/\.ts$/, ".js");
      return code.replaceAll("import.meta.url", `new URL(${JSON.stringify(`../${place}`)}, import.meta.url).href`);
    },
  };
}
