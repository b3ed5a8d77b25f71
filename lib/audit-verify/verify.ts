import type { NoteKey } from "../sign/note.ts";
import { parseVkeys } from "../sign/vkeys.ts";
import type { Finding, OpenPermit } from "./finding.ts";
import { collectHeads, createKeyCheck } from "./heads.ts";
import { decodeRecord, type LogSource } from "./log-source.ts";
import { createMeaningCheck } from "./meaning.ts";
import { createTreeCheck } from "./tree.ts";

export type { Finding, FindingKind, OpenPermit } from "./finding.ts";

/** What a log is verified with. Nothing else is trusted. */
export interface VerifyOptions {
  /** The log's verifier keys, one a line, in the form of C2SP signed notes: the content of checkpoint.vkey. */
  verifierKey: string;
  /**
   * Signed checkpoints that a witness has kept. Without one, a writer of the database can cut the log at an
   * older checkpoint unseen.
   */
  witness?: readonly string[];
}

/** What verifying found. */
export interface LogReport {
  /** True where nothing is wrong. */
  ok: boolean;
  /** How many records were read. */
  size: number;
  /** How many checkpoints the log keeps. */
  checkpoints: number;
  /** How many records are under a signed checkpoint. */
  signed: number;
  /** What is wrong, at most 100 things. */
  findings: Finding[];
  /** Calls that were permitted and whose end is not in the log. */
  open: OpenPermit[];
}

/** More findings than this say nothing new. */
const MAX_FINDINGS = 100;

/**
 * Verifies a whole log from its bytes: every leaf hash, no gap, every node, every checkpoint's signature and root, nothing
 * cut off, and that each call that ran was permitted. Reads once, in order. Throws TypeError for a verifier key that is
 * none; whatever is wrong with the log is a finding.
 */
export async function verifyLog(source: LogSource, options: VerifyOptions): Promise<LogReport> {
  const keys = keysOf(options.verifierKey);
  const findings: Finding[] = [];
  const found = (more: readonly Finding[]): void => {
    findings.push(...more.slice(0, MAX_FINDINGS - findings.length));
  };
  const meaning = createMeaningCheck();
  let size = 0;
  let checkpoints = 0;
  let signed = 0;
  let intact = true;
  const misplaced: Finding[] = [];
  try {
    const heads = await collectHeads(source.checkpoints(), options.witness ?? [], keys);
    checkpoints = heads.kept;
    found(heads.findings);
    const tree = createTreeCheck(heads, source.nodeAt);
    const signers = createKeyCheck(heads);
    for await (const entry of source.entries()) {
      const changes = tree.take(entry);
      intact &&= changes.length === 0;
      found(changes);
      size += 1;
      const record = decodeRecord(entry.leaf);
      if (record) signers.take(entry.index, record);
      const meant = record ? meaning.take(entry.index, record) : [unreadable(entry.index)];
      if (misplaced.length < MAX_FINDINGS) misplaced.push(...meant);
    }
    // Beside a changed or missing record these would report its consequences only.
    if (intact) found([...misplaced, ...signers.end()]);
    found(tree.end());
    signed = Math.min(size, heads.newest);
  } catch (e: unknown) {
    found([{ kind: "unreadable", index: size, message: `the log cannot be read after ${size} records: ${textOf(e)}` }]);
  }
  return { ok: findings.length === 0, size, checkpoints, signed, findings, open: meaning.open() };
}

function keysOf(text: string): [NoteKey, ...NoteKey[]] {
  const keys = parseVkeys(text);
  if (keys) return keys;
  throw new TypeError("not the verifier keys of one log");
}

function unreadable(index: number): Finding {
  return { kind: "unreadable", index, message: `record ${index} is no record` };
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
