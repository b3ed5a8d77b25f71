import { execFileSync } from "node:child_process";
import { readdirSync, statSync } from "node:fs";
import { join, relative } from "node:path";
import { pathToFileURL } from "node:url";
import { productionPackages } from "./notices.ts";
import { repositoryRoot } from "./repository-root.ts";

/** One part of the image's /app and how much it holds. */
export interface ImagePart {
  /** "dist/lib", or "node_modules/kysely". */
  name: string;
  files: number;
  bytes: number;
}

/** The folders that deploy/Dockerfile copies out of the build, besides what it installs. */
const COPIED = ["bin", "dist", "gen/schema", "proto"];

/**
 * What goes into /app of the image: what deploy/Dockerfile copies, after `npm run build`, and the packages that `npm ci
 * --omit=dev --omit=optional` installs, by the lock file, less their declarations and maps. The same files, without a container
 * engine.
 */
export function imageFiles(): string[] {
  const own = COPIED.flatMap((folder) => filesBelow(join(repositoryRoot, folder)));
  return [
    ...own,
    ...["package.json", "package-lock.json", "LICENSE"].map((name) => join(repositoryRoot, name)),
    ...installed(),
  ].map((path) => relative(repositoryRoot, path));
}

/** The files by part, the largest first. */
export function imageParts(files: readonly string[] = imageFiles()): ImagePart[] {
  const parts = new Map<string, ImagePart>();
  for (const file of files) {
    const name = partOf(file);
    const part = parts.get(name) ?? { name, files: 0, bytes: 0 };
    part.files++;
    part.bytes += statSync(join(repositoryRoot, file)).size;
    parts.set(name, part);
  }
  return [...parts.values()].sort((a, b) => b.bytes - a.bytes);
}

/** The list as it is printed. */
export function imageText(parts: readonly ImagePart[]): string {
  const rows = parts.map(
    ({ name, files, bytes }) => `${megabytes(bytes).padStart(8)} MB ${String(files).padStart(6)}  ${name}`,
  );
  const total = parts.reduce((sum, { bytes }) => sum + bytes, 0);
  const count = parts.reduce((sum, { files }) => sum + files, 0);
  return [
    ...rows,
    `${megabytes(total).padStart(8)} MB ${String(count).padStart(6)}  in /app, beside the image's Node`,
  ].join("\n");
}

/** What only compilers and debuggers read of a package. deploy/Dockerfile deletes it. */
const LEFT_OUT = /\.(?:map|d\.[mc]?ts)$/;

function installed(): string[] {
  return productionPackages()
    .flatMap(({ path }) => filesBelow(path, "node_modules"))
    .filter((path) => !LEFT_OUT.test(path));
}

function filesBelow(folder: string, without?: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return entry.name === without ? [] : filesBelow(path, without);
    return entry.isFile() ? [path] : [];
  });
}

function partOf(file: string): string {
  const [first = "", second = "", third = ""] = file.split("/");
  if (first !== "node_modules") return second === "" ? first : `${first}/${second}`;
  return second.startsWith("@") ? `${first}/${second}/${third}` : `${first}/${second}`;
}

function megabytes(bytes: number): string {
  return (bytes / 1_000_000).toFixed(2);
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  execFileSync("npm", ["run", "-s", "build"], { cwd: repositoryRoot, stdio: "inherit" });
  console.log(imageText(imageParts()));
}
