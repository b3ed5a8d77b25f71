import { posix } from "node:path";
import { AREAS, type Floors } from "./floors.ts";
import { importsOf } from "./imports.ts";
import { isTest, type SourceFile } from "./source-file.ts";

/** An import of one folder by another, where it stands. */
interface Arrow {
  from: string;
  to: string;
  place: string;
}

/**
 * What breaks the order of the folders in `areas`: an import of a higher floor, a folder that is on no floor, a circle
 * of imports between folders (types count). A file beside the folders of an area counts as a folder of its own: it is
 * either wiring above them or a base below them.
 */
export function folderViolations(
  files: readonly SourceFile[],
  areas: Readonly<Record<string, Floors>> = AREAS,
): string[] {
  const product = files.filter(({ path }) => !isTest(path));
  const arrows = product.flatMap((file) => arrowsOf(file, areas));
  const upward = arrows.filter((arrow) => isUpward(arrow, areas));
  const refused = new Set(upward.map(pairOf));
  return [
    ...unplaced(product, areas),
    ...upward.map(({ place, from, to }) => `${place}: ${from} must not import ${to}, which is on a higher floor`),
    ...circlesIn(arrows.filter((arrow) => !refused.has(pairOf(arrow)))).map((circle) => `circle of imports: ${circle}`),
  ];
}

/** The folder that a file counts for; the file itself where it is beside the folders of an area. */
export function folderOf(path: string, areas: Readonly<Record<string, Floors>> = AREAS): string {
  const area = areaOf(path, areas);
  if (area === undefined) return path.split("/", 1).join("/");
  const below = path.slice(area.length + 1).split("/");
  return `${area}/${below[0]}`;
}

function areaOf(path: string, areas: Readonly<Record<string, Floors>>): string | undefined {
  return Object.keys(areas).find((area) => path.startsWith(`${area}/`));
}

function arrowsOf({ path, text }: SourceFile, areas: Readonly<Record<string, Floors>>): Arrow[] {
  const from = folderOf(path, areas);
  return importsOf(text).flatMap(({ specifier, line }) => {
    if (!specifier.startsWith(".")) return [];
    const to = folderOf(posix.join(posix.dirname(path), specifier), areas);
    return to === from ? [] : [{ from, to, place: `${path}:${line}` }];
  });
}

function isUpward({ from, to }: Arrow, areas: Readonly<Record<string, Floors>>): boolean {
  const [here, there] = [floorOf(from, areas), floorOf(to, areas)];
  return here !== undefined && there !== undefined && here.area === there.area && here.floor < there.floor;
}

function floorOf(folder: string, areas: Readonly<Record<string, Floors>>) {
  const area = areaOf(folder, areas);
  const floors = Object.values(areas[area ?? ""] ?? {});
  const floor = floors.findIndex((names) => names.includes(posix.basename(folder)));
  return floor === -1 ? undefined : { area, floor };
}

function unplaced(files: readonly SourceFile[], areas: Readonly<Record<string, Floors>>): string[] {
  const folders = new Set(files.map(({ path }) => folderOf(path, areas)));
  return [...folders]
    .filter((folder) => areaOf(folder, areas) && !folder.endsWith(".ts") && !floorOf(folder, areas))
    .map((folder) => `${folder} is on no floor: name it in scripts/import-directions/floors.ts`);
}

function pairOf({ from, to }: Arrow): string {
  return `${from} → ${to}`;
}

/** The groups of folders that import each other in a circle: the shortest circle of each, as text. */
function circlesIn(arrows: readonly Arrow[]): string[] {
  const next = new Map<string, Set<string>>();
  for (const { from, to } of arrows) next.set(from, (next.get(from) ?? new Set()).add(to));
  const seen = new Set<string>();
  return [...next.keys()].flatMap((start) => {
    if (seen.has(start)) return [];
    const circle = shortestCircle(start, next);
    if (!circle) return [];
    for (const one of next.keys()) if (reaches(start, one, next) && reaches(one, start, next)) seen.add(one);
    return [circle.join(" → ")];
  });
}

function reaches(from: string, to: string, next: ReadonlyMap<string, ReadonlySet<string>>): boolean {
  return pathBetween(from, to, next) !== undefined;
}

function shortestCircle(start: string, next: ReadonlyMap<string, ReadonlySet<string>>): string[] | undefined {
  const way = pathBetween(start, start, next);
  return way && [start, ...way];
}

/** The folders after `from` on the shortest path of imports to `to`, by breadth first. */
function pathBetween(from: string, to: string, next: ReadonlyMap<string, ReadonlySet<string>>): string[] | undefined {
  const paths: string[][] = [...(next.get(from) ?? [])].map((one) => [one]);
  const seen = new Set<string>();
  for (const path of paths) {
    const last = path.at(-1) ?? "";
    if (last === to) return path;
    if (seen.has(last)) continue;
    seen.add(last);
    for (const one of next.get(last) ?? []) paths.push([...path, one]);
  }
  return undefined;
}
