import type { JsonValue } from "@bufbuild/protobuf";
import { type Document, isAlias, isMap, isScalar, isSeq, LineCounter, type Node, parseDocument, visit } from "yaml";
import { nearestName } from "./nearest-name.ts";

/** One thing that is wrong with a YAML file. */
export interface YamlProblem {
  /** The line in the file, from 1. */
  line: number;
  /** What is wrong and, where it helps, what would be right. */
  message: string;
}

/** A node of a YAML file, or nothing. */
export type YamlNode = Node | null | undefined;

/** What to write instead, by the key. */
export type Hints = ReadonlyMap<string, string>;

/** Reads a YAML file strictly: whatever is not as expected becomes a problem with its line. */
export interface YamlReader<P extends YamlProblem = YamlProblem> {
  /** The file's only document. */
  root: YamlNode;
  /** Everything found so far, in the order it was found. */
  problems: P[];
  /** The line that a node starts on, from 1. */
  lineOf(node: YamlNode): number;
  /** Writes down a problem at a node. */
  report(node: YamlNode, message: string): void;
  /**
   * The values of a mapping with these keys; any other key, or anything but a mapping, is a problem.
   *
   * @param hints what to write in place of a key that is likely and unknown. Default: the nearest known one.
   */
  fields(node: YamlNode, what: string, keys: readonly string[], hints?: Hints): Map<string, YamlNode>;
  /** The items of a list; none where the node is left out. */
  items(node: YamlNode, what: string): YamlNode[];
  /** The keys of a mapping with texts as values, and these; anything else is a problem. */
  texts(node: YamlNode, what: string): [string, string][];
  /** A text; undefined where the node is left out or is no text. */
  text(node: YamlNode, what: string): string | undefined;
  /** true or false; undefined where the node is left out or is neither. */
  flag(node: YamlNode, what: string): boolean | undefined;
  /** The plain data under a node. */
  data(node: YamlNode): JsonValue;
}

/** Parses YAML 1.2 with the core schema. Repeated keys, anchors, aliases and custom tags are problems. */
export function createYamlReader<P extends YamlProblem = YamlProblem>(text: string): YamlReader<P> {
  const lineCounter = new LineCounter();
  const document = parseDocument(text, { lineCounter, strict: true, uniqueKeys: true, schema: "core", version: "1.2" });
  const problems: P[] = [];
  const lineAt = (offset: number): number => lineCounter.linePos(offset).line;
  const lineOf = (node: YamlNode): number => (node?.range ? lineAt(node.range[0]) : 1);
  const report = (node: YamlNode, message: string): void => {
    problems.push({ line: lineOf(node), message } as P);
  };
  for (const error of [...document.errors, ...document.warnings]) {
    problems.push({ line: lineAt(error.pos[0]), message: firstLine(error.message) } as P);
  }
  refuseReferences(document, report);
  return {
    root: document.contents,
    problems,
    lineOf,
    report,
    fields: (node, what, keys, hints) => readFields(node, what, keys, report, hints),
    items(node, what) {
      if (isAbsent(node)) return [];
      if (isSeq(node)) return node.items as YamlNode[];
      report(node, `${what} must be a list`);
      return [];
    },
    texts(node, what) {
      if (isAbsent(node)) return [];
      if (!isMap(node)) {
        report(node, `${what} must be a mapping`);
        return [];
      }
      return node.items.flatMap((pair): [string, string][] => {
        const value = pair.value as YamlNode;
        if (isScalar(pair.key) && isScalar(value) && typeof value.value === "string")
          return [[String(pair.key.value), value.value]];
        report((value ?? pair.key) as YamlNode, `${what}: the value of a key must be a text`);
        return [];
      });
    },
    text(node, what) {
      if (isAbsent(node)) return undefined;
      if (isScalar(node) && typeof node.value === "string") return node.value;
      report(node, `${what} must be a text`);
      return undefined;
    },
    flag(node, what) {
      if (isAbsent(node)) return undefined;
      if (isScalar(node) && typeof node.value === "boolean") return node.value;
      report(node, `${what} must be true or false`);
      return undefined;
    },
    data: (node) => (isAbsent(node) ? null : (node?.toJS(document) as JsonValue)),
  };
}

type Report = (node: YamlNode, message: string) => void;

function readFields(
  node: YamlNode,
  what: string,
  keys: readonly string[],
  report: Report,
  hints?: Hints,
): Map<string, YamlNode> {
  const fields = new Map<string, YamlNode>();
  if (!isMap(node)) {
    if (!isAbsent(node)) report(node, `${what} must be a mapping with the keys ${keys.join(", ")}`);
    return fields;
  }
  for (const pair of node.items) {
    const key = isScalar(pair.key) ? String(pair.key.value) : "";
    if (keys.includes(key)) fields.set(key, pair.value as YamlNode);
    else report(pair.key as YamlNode, `${what}: unknown key "${key}"; ${hints?.get(key) ?? hintFor(key, keys)}`);
  }
  return fields;
}

function hintFor(key: string, keys: readonly string[]): string {
  const nearest = nearestName(key, keys);
  return nearest === undefined ? `known are ${keys.join(", ")}` : `did you mean "${nearest}"?`;
}

/** Whether nothing stands there. */
export function isAbsent(node: YamlNode): boolean {
  return node === null || node === undefined || (isScalar(node) && node.value === null);
}

// A file of a few lines can stand for gigabytes through aliases, and what a reader sees is no longer what is active.
function refuseReferences(document: Document.Parsed, report: Report): void {
  visit(document, {
    Node(_, node) {
      if (isAlias(node)) report(node, "aliases are not supported: write it out");
      else if (node.anchor !== undefined) report(node, "anchors are not supported");
    },
  });
}

function firstLine(text: string): string {
  return text.split("\n", 1)[0]?.replace(/ at line \d+, column \d+:?$/, "") ?? text;
}
