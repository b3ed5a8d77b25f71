import { createFrontier, type TreeNode } from "../merkle/frontier.ts";
import { leafHash } from "../merkle/hash.ts";
import type { Finding } from "./finding.ts";
import type { Heads, TrustedHead } from "./heads.ts";
import type { LogSource, StoredEntry } from "./log-source.ts";

/** Recomputes a log's tree, record by record. */
export interface TreeCheck {
  /** Takes the next record; returns what is wrong. */
  take(entry: StoredEntry): Finding[];
  /** What is wrong with the log as a whole, after the last record. */
  end(): Finding[];
}

/**
 * Recomputes every leaf hash and node, and compares with what is stored and with every signed head, in one pass and with
 * memory for the tree's height only. After a gap nothing later can be recomputed: the gap itself is reported, precisely.
 */
export function createTreeCheck(heads: Heads, nodeAt: LogSource["nodeAt"]): TreeCheck {
  const frontier = createFrontier();
  let expected = 0;
  let broken = false;

  const compareHeads = (): Finding[] => {
    if (broken) return [];
    const root = Buffer.from(frontier.root());
    const others = (heads.bySize.get(frontier.size) ?? []).filter((head) => !root.equals(head.root));
    return others.map(fork);
  };
  return {
    take(entry) {
      const findings: Finding[] = [];
      if (entry.index !== expected) {
        findings.push(missing(expected, entry.index - 1));
        broken = true;
      }
      expected = entry.index + 1;
      const { hash, finding } = hashOf(entry);
      if (finding) findings.push(finding);
      if (broken) return findings;
      const nodes = frontier.append(hash);
      findings.push(...differentNodes(nodes, nodeAt, frontier.size <= heads.built));
      return [...findings, ...compareHeads()];
    },
    end() {
      if (expected === 0 && heads.newest === 0) return [];
      if (heads.newest > expected) return [truncated(expected, heads)];
      if (hasLaterNodes(expected, nodeAt)) return [cutBelowNodes(expected)];
      if (heads.newest > 0) return [];
      return [{ kind: "no_checkpoint", message: `the log holds ${expected} records and not one checkpoint` }];
    },
  };
}

// With the kept hash the tree stays what was signed, so a changed record is reported once, and nothing else because of it.
function hashOf({ index, leaf, hash }: StoredEntry): { hash: Uint8Array; finding?: Finding } {
  const computed = leafHash(leaf);
  if (!hash || Buffer.from(computed).equals(hash)) return { hash: computed };
  const message = `record ${index} has been changed: its bytes do not have the hash that is kept with it`;
  return { hash: hash.length === computed.length ? hash : computed, finding: { kind: "flipped", index, message } };
}

// Nodes over records that no checkpoint covers yet are not stored yet.
function differentNodes(nodes: readonly TreeNode[], nodeAt: LogSource["nodeAt"], built: boolean): Finding[] {
  if (!nodeAt) return [];
  const isRight = (node: TreeNode): boolean => {
    const stored = nodeAt(node);
    return stored ? Buffer.from(node.hash).equals(stored) : !built;
  };
  return nodes
    .filter((node) => node.level > 0 && !isRight(node))
    .map(({ level, index }) => {
      const first = index * 2 ** level;
      const message = `the tree's node over the records ${first} to ${first + 2 ** level - 1} is not the hash of these records`;
      return { kind: "bad_node", index: first, message };
    });
}

function missing(first: number, last: number): Finding {
  const which = first === last ? `record ${first} is` : `the records ${first} to ${last} are`;
  return { kind: "missing", index: first, message: `${which} missing` };
}

function truncated(size: number, heads: Heads): Finding {
  const signed = heads.bySize.get(heads.newest)?.[0];
  const by = signed?.from === "witness" ? "as the witness knows" : "as its own checkpoint says";
  const message = `the log ends at ${size} records, but ${heads.newest} were signed, ${by}: the records from ${size} on are gone`;
  return { kind: "truncated", index: size, message };
}

/** The highest level that a tree of 2^53 records has. */
const TOP_LEVEL = 53;

// A node over a missing record was written when the record still existed.
function hasLaterNodes(size: number, nodeAt: LogSource["nodeAt"]): boolean {
  for (let level = 1; nodeAt && level <= TOP_LEVEL; level++) {
    if (nodeAt({ level, index: Math.floor(size / 2 ** level) })) return true;
  }
  return false;
}

function cutBelowNodes(size: number): Finding {
  const message = `the log ends at ${size} records, but its tree has nodes over later ones: they are gone`;
  return { kind: "truncated", index: size, message };
}

function fork({ size, from }: TrustedHead): Finding {
  const by = from === "witness" ? "the witness's checkpoint" : "the checkpoint";
  return { kind: "fork", message: `the first ${size} records are not those that ${by} at ${size} was signed for` };
}
