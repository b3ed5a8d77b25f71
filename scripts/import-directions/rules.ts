import { posix } from "node:path";
import { blankComments, type Import, importsOf, lineAt } from "./imports.ts";
import { isTest, type SourceFile } from "./source-file.ts";

/** What the published package may load. */
export interface RuleOptions {
  /** The names under "dependencies" in package.json. */
  dependencies: ReadonlySet<string>;
}

/** What each layer of the product may import. `own` is the part itself: gen, lib, cli, or one service. */
const LAYERS: Readonly<Record<string, readonly string[]>> = {
  gen: ["own"],
  lib: ["gen", "own"],
  services: ["gen", "lib", "client", "own"],
  cli: ["gen", "lib", "client", "services", "own"],
  client: ["gen", "own"],
};

/** What each layer that is not published must not import. */
const NOT_BELOW: Readonly<Record<string, readonly string[]>> = {
  testkit: ["test", "bench"],
  bench: ["test"],
};

/** The only parts of cli that start services, a model's loop, or policy's reader of its file. All else uses client/. */
const CLI_STARTS = [
  "cli/chat/",
  "cli/demo/",
  "cli/stack/",
  "cli/commands/migrate.ts",
  "cli/commands/run-up.ts",
  "cli/commands/serve.ts",
  "cli/device/join.ts",
  "cli/agent/show.ts",
  "cli/policy/check.ts",
];

/** The only part of lib that the client imports, so that it imports as little as the client does. */
const CLIENT_LIB = "lib/rpc-client/unary/";

/** The packages that the client may load, since others load them with it. */
const CLIENT_PACKAGES = /^(?:@connectrpc\/|@bufbuild\/protobuf$)/;

/** The executor, the editor that a person names, and the server of durable runs. */
const STARTS_PROGRAMS = [
  "services/device-agent/executor/",
  "cli/manifest/edit.ts",
  "cli/stack/restate-server.ts",
  "scripts/",
  "testkit/",
  "test/",
  "bench/",
];
const READS_ENVIRONMENT = ["cli/", "scripts/", "testkit/", "test/", "bench/", "examples/"];
const ENVIRONMENT_FILES = new Set(["config.ts", "main.ts"]);
const ENVIRONMENT =
  /\bprocess\s*(?:\??\.\s*env\b|\[\s*["']env["'])|\{[^}]*\benv\b[^}]*\}\s*(?:=\s*process\b|from\s*["'](?:node:)?process["'])/g;

/** Everything that breaks a rule about who may import or read what: one line each, `path:line: what is wrong`. */
export function findViolations(files: readonly SourceFile[], options: RuleOptions): string[] {
  return [...files.flatMap((file) => violationsOf(file, options)), ...secondSqliteFiles(files)];
}

function violationsOf(file: SourceFile, options: RuleOptions): string[] {
  const found = importsOf(file.text).flatMap((entry) => {
    const problem = importProblem(file.path, entry, options);
    return problem ? [`${file.path}:${entry.line}: ${problem}`] : [];
  });
  return [...found, ...environmentReads(file)];
}

function importProblem(path: string, entry: Import, { dependencies }: RuleOptions): string | undefined {
  if (entry.specifier.startsWith(".")) return directionProblem(path, entry.specifier);
  if (/^(?:node:)?child_process$/.test(entry.specifier)) return programProblem(path);
  if (packageName(entry.specifier) === "pg") return postgresProblem(path);
  if (entry.specifier.startsWith("node:") || entry.typeOnly || !isProduct(path)) return undefined;
  const name = packageName(entry.specifier);
  if ((layerOf(path) === "client" || path.startsWith(CLIENT_LIB)) && !CLIENT_PACKAGES.test(name))
    return `imports ${name}: the client needs little`;
  return dependencies.has(name) ? undefined : `imports ${name}, which is no dependency of the published package`;
}

function directionProblem(path: string, specifier: string): string | undefined {
  const target = posix.join(posix.dirname(path), specifier);
  if (target.endsWith(".test.ts"))
    return `imports ${target}: tests run once in a worker, and who imports them has none`;
  const [from, to] = [layerOf(path), layerOf(target)];
  if (NOT_BELOW[from]?.includes(to)) return `imports ${target}: ${from} must not import ${to}`;
  if (from === "cli" && to === "services" && !isTest(path) && !startsWithAny(path, CLI_STARTS)) {
    return `imports ${target}: only ${CLI_STARTS.join(", ")} start them, everything else in cli uses client/`;
  }
  if (from === "client" && target.startsWith(CLIENT_LIB)) return undefined;
  if (path.startsWith(CLIENT_LIB) && !target.startsWith(CLIENT_LIB) && !isTest(path))
    return `imports ${target}: the client imports ${CLIENT_LIB}, which stands by itself`;
  const allowed = LAYERS[from];
  if (!allowed || partOf(path) === partOf(target) || allowed.includes(to)) return undefined;
  // A test beside the code is not published, so it may use helpers and files from anywhere outside the layers.
  if (isTest(path) && !(to in LAYERS)) return undefined;
  if (from === "services" && to === "services") return `imports ${target}: services meet in gen, not in each other`;
  return `imports ${target}: ${from} must not import ${to in LAYERS ? to : "what is outside the package"}`;
}

function programProblem(path: string): string | undefined {
  if (isTest(path) || startsWithAny(path, STARTS_PROGRAMS)) return undefined;
  return "imports node:child_process: only services/device-agent/executor starts programs";
}

/** Everybody else has a database of lib/store, which is SQLite for one and PostgreSQL for another. */
function postgresProblem(path: string): string | undefined {
  if (!(layerOf(path) in LAYERS) || path.startsWith("lib/store/")) return undefined;
  return "imports pg: only lib/store does";
}

function environmentReads(file: SourceFile): string[] {
  const name = posix.basename(file.path);
  if (isTest(file.path) || ENVIRONMENT_FILES.has(name) || startsWithAny(file.path, READS_ENVIRONMENT)) return [];
  const code = blankComments(file.text);
  return [...code.matchAll(ENVIRONMENT)].map(
    (match) => `${file.path}:${lineAt(code, match.index)}: reads the environment: only main.ts and config.ts do`,
  );
}

/** Watches node:sqlite itself, so that no commit escapes the test. */
const SQLITE_WATCHER = "test/kill-points/watch-sqlite.ts";

/** node:sqlite changes its names between minor versions of Node, so one file in lib/store knows it. */
function secondSqliteFiles(files: readonly SourceFile[]): string[] {
  const users = files.flatMap(({ path, text }) => {
    const entry = importsOf(text).find(({ specifier }) => specifier === "node:sqlite");
    return entry ? [{ path, line: entry.line }] : [];
  });
  const [keeper] = users.filter(({ path }) => path.startsWith("lib/store/") && !isTest(path));
  return users
    .filter((user) => user !== keeper && user.path !== SQLITE_WATCHER)
    .map(
      ({ path, line }) => `${path}:${line}: imports node:sqlite: only ${keeper?.path ?? "one file in lib/store"} does`,
    );
}

function isProduct(path: string): boolean {
  return layerOf(path) in LAYERS && !isTest(path);
}

function layerOf(path: string): string {
  return path.split("/")[0] ?? "";
}

/** The smallest part that may import itself freely: a service, or a whole layer. */
function partOf(path: string): string {
  const [layer = "", name = ""] = path.split("/");
  return layer === "services" ? `${layer}/${name}` : layer;
}

function packageName(specifier: string): string {
  return specifier.split("/", specifier.startsWith("@") ? 2 : 1).join("/");
}

function startsWithAny(path: string, prefixes: readonly string[]): boolean {
  return prefixes.some((prefix) => path.startsWith(prefix));
}
