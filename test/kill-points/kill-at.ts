import { appendFileSync, existsSync, readFileSync, rmSync } from "node:fs";

/** Where a process that may be killed notes its points. */
const FOLDER = process.env.REEVE_KILL_POINTS ?? "";

/** Names the point to be killed at; empty for none. The file exists only while points are counted. */
export const targetFile = (folder: string): string => `${folder}/target`;

/** The points that were passed while they were counted: a line each, with all its names. */
export const passedFile = (folder: string): string => `${folder}/passed`;

/** Between the names of a point. */
export const AND = " and ";

/**
 * A place where something reaches the disk or is about to. While points are counted, the process is killed (SIGKILL) at the
 * one that is named, with how often its name has come: their order varies with what shares a commit.
 *
 * @param names the place's names, one for each write that shares a commit; at least one.
 * @param beforeKill what the kill does besides. Default nothing.
 */
export function killPoint(names: readonly string[], beforeKill?: () => void): void {
  const file = targetFile(FOLDER);
  if (!existsSync(file)) return;
  const passed = readFileSync(passedFile(FOLDER), "utf8")
    .split("\n")
    .flatMap((line) => line.split(AND));
  const points = names.map((name) => `${name} #${passed.filter((one) => one.startsWith(`${name} #`)).length + 1}`);
  appendFileSync(passedFile(FOLDER), `${points.join(AND)}\n`);
  if (!points.includes(readFileSync(file, "utf8"))) return;
  rmSync(file);
  beforeKill?.();
  process.kill(process.pid, "SIGKILL");
}

/** What a statement writes, in words: "insert into calls". Undefined where it writes nothing. */
export function writeOf(sql: string): string | undefined {
  const [, verb, table] = /\b(insert into|update|delete from)\s+"?(\w+)/i.exec(sql) ?? [];
  return verb && `${verb.toLowerCase()} ${table}`;
}
