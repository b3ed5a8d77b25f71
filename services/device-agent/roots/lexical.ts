import { invalidField } from "../../../lib/fault/invalid-input.ts";

/** What a path is wanted for, and the input field that it came in. */
export interface Need {
  access: "read" | "write";
  /** The field that an error names, such as "path" or "cwd". */
  field: string;
}

/**
 * The names of an absolute path, one a level, without "" and ".". ".." removes one level as text: that is what the
 * kernel would do too, because the walk that follows refuses symbolic links. Fault: INVALID_INPUT for a path that is
 * not absolute or holds a NUL.
 */
export function segmentsOf(path: string, field: string): string[] {
  if (!path.startsWith("/") || path.includes("\0")) {
    const message = "must be an absolute path";
    throw invalidField(field, "path", message, { text: message });
  }
  const segments: string[] = [];
  for (const segment of path.split("/")) {
    if (segment === "..") segments.pop();
    else if (segment !== "" && segment !== ".") segments.push(segment);
  }
  return segments;
}

/** The names of `path` below `root`, or undefined where it is not at or below it. */
export function below(root: readonly string[], path: readonly string[]): string[] | undefined {
  return root.every((segment, level) => path[level] === segment) ? path.slice(root.length) : undefined;
}

/** An absolute path of names. */
export function pathOf(segments: readonly string[]): string {
  return `/${segments.join("/")}`;
}
