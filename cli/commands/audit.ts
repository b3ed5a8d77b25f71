import { readFile, writeFile } from "node:fs/promises";
import { type JsonObject, toJson } from "@bufbuild/protobuf";
import { type Command, Option } from "commander";
import { type LogEntry, LogEntrySchema } from "../../gen/ts/reeve/audit/v1/audit_service_pb.ts";
import { AuditRecordSchema } from "../../gen/ts/reeve/audit/v1/record_pb.ts";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { verifyLog } from "../../lib/audit-verify/verify.ts";
import { fault } from "../../lib/fault/fault.ts";
import { findLog, keyPathIn, type LogFlags, readKey } from "../audit/find-log.ts";
import { callsOf } from "../audit/join-calls.ts";
import { withProgress } from "../audit/progress.ts";
import { bundleJson, checkProof, readBundle } from "../audit/proof.ts";
import { eventText, recordsTable } from "../audit/record-text.ts";
import { renderReport, reportJson } from "../audit/verify-report.ts";
import { describeCall } from "../call/describe-call.ts";
import { callJson } from "../call/show-receipt.ts";
import type { CommandContext } from "../command-context.ts";
import { withConnection, withSession } from "../connection-options.ts";
import { UsageError } from "../errors/usage-error.ts";
import { ExitCode } from "../exit-codes.ts";
import { followList } from "../follow-list.ts";
import { noteListed } from "../list-notes.ts";
import {
  type HistoryFlags,
  isSince,
  pageSize,
  parseIndex,
  withFollow,
  withHistory,
  withJson,
} from "../list-options.ts";
import { safeFor, visibleLine } from "../print/escape.ts";
import { jsonDocument, jsonLine, wholeJson } from "../print/json.ts";
import { type Page, readAll, readPages } from "../print/pages.ts";
import { readable } from "../print/readable.ts";
import { styleFor } from "../print/style.ts";
import type { TableParts } from "../print/table.ts";
import { timeAndAge } from "../print/time.ts";
import { dataDir, readProfile } from "../profile.ts";
import type { Session } from "../session.ts";
import type { TargetFlags } from "../target.ts";

interface AuditListFlags extends TargetFlags, HistoryFlags {
  call?: string;
  oldestFirst?: true;
}

interface ProofFlags extends TargetFlags {
  call?: string;
  leaf?: string;
  json?: true;
}

interface CheckFlags {
  key?: string;
  leaf?: string;
  json?: true;
}

/** Registers `reeve audit` with list, show, verify, prove and verify-proof. */
export function registerAudit(program: Command, context: CommandContext): void {
  const audit = program
    .command("audit")
    .description("List, show, verify and prove the record of what was decided and done.");
  const listing = audit.command("list").description("List records, newest first, with what the calls in them ran.");
  withFollow(withHistory(withConnection(listing)))
    .option("--call <id>", "only records about this call, oldest first")
    .addOption(new Option("--oldest-first", "from the beginning of the log").conflicts("follow"))
    .action((flags: AuditListFlags) => list(flags, context));
  withJson(withConnection(audit.command("show").argument("<index>", "the record's index", parseIndex)))
    .description("Show one record whole, and the call that it is about.")
    .action((index: number, flags: ProofFlags) =>
      withSession(context, flags, (session) => show(session, index, flags, context)),
    );
  withJson(withConnection(audit.command("verify")))
    .description(
      "Recompute the whole log: every record, no gap, every signature, nothing cut off. Exit code 10 on findings.",
    )
    .option(
      "--db <file>",
      "policy's database; default: this machine's control plane, read without it; else over the network",
    )
    .option("--database-url", "policy's PostgreSQL database, whose URL is in REEVE_POLICY_DATABASE_URL; needs --key")
    .option(
      "--key <key>",
      "the verifier key, or a file that holds it; default: checkpoint.vkey beside the database, or in policy/ there",
    )
    .option("--witness <file>", "a checkpoint that another party has kept; may be repeated", collect, [])
    .option("--remote", "ask the service even where the database is at hand")
    .action((flags: LogFlags & { witness: string[]; json?: true }) => verify(flags, context));
  withJson(withConnection(audit.command("prove").argument("[index]", "the record's index", parseIndex)))
    .description(
      "Print the proof that a record is in the log (https://c2sp.org/tlog-proof); with --json, the record too.",
    )
    .option("--call <id>", "the last record about this call, in place of an index")
    .option("--leaf <file>", "write the record's exact bytes there")
    .action((index: number | undefined, flags: ProofFlags) =>
      withSession(context, flags, (session) => proof(session, index, flags, context)),
    );
  withJson(
    audit.command("verify-proof").argument("<proof>", "a file that `reeve audit prove` wrote, with --json or without"),
  )
    .description("Check a proof offline. Exit code 10 where it does not hold.")
    .option("--leaf <file>", "the record's exact bytes, for a proof without them")
    .option("--key <key>", "the verifier key, or a file that holds it; default: that of this machine's control plane")
    .action((path: string, flags: CheckFlags) => check(path, flags, context));
}

function collect(value: string, all: string[]): string[] {
  return [...all, value];
}

async function list(flags: AuditListFlags, context: CommandContext): Promise<void> {
  const { call: callId = "", limit, pageToken, since } = flags;
  if (flags.oldestFirst && since !== undefined) throw new UsageError("--oldest-first and --since exclude each other");
  const newestFirst = flags.oldestFirst !== true && (callId === "" || flags.follow === true);
  const isWanted = ({ record }: LogEntry) => isSince(record?.time, since);
  const part = { limit, pageToken, ...(newestFirst && { isWanted }) };
  await withSession(context, flags, async (session) => {
    const read = recordsFrom(session, { callId, newestFirst });
    if (flags.follow) {
      const parts: TableParts = {};
      const print = async (entries: readonly LogEntry[]) => {
        const text = flags.json
          ? entries.map((entry) => jsonLine(wholeJson(LogEntrySchema, entry))).join("")
          : recordsTable(entries, await callsOf(session, entries), context, parts);
        context.stdout.write(text);
      };
      return followList({ read, part, idOf: ({ index }) => String(index), print }, context);
    }
    const { items, nextPageToken } = await readPages(read, part);
    const entries = newestFirst ? items : items.filter(isWanted);
    const calls = await callsOf(session, entries);
    if (flags.json) {
      const records = entries.map((entry) => wholeJson(LogEntrySchema, entry));
      const shown = Object.fromEntries([...calls].map(([id, call]) => [id, callJson(call)]));
      return void context.stdout.write(jsonDocument({ records, nextPageToken, calls: shown }));
    }
    context.stdout.write(recordsTable(entries, calls, context));
    // Indexes have no gap: below the last one shown are so many.
    const last = entries.at(-1)?.index;
    const more = newestFirst && since === undefined && last !== undefined ? Number(last) : undefined;
    noteListed({ things: "records", shown: entries.length, nextPageToken, more }, context);
  });
}

async function show(session: Session, index: number, flags: ProofFlags, context: CommandContext): Promise<void> {
  const { entry } = await session.audit.getInclusionProof({ index: BigInt(index) });
  if (entry?.record === undefined) throw new UsageError(`record ${index} cannot be read`);
  const call = (await callsOf(session, [entry])).get(entry.record.callId);
  if (flags.json) {
    const record = wholeJson(LogEntrySchema, entry);
    return void context.stdout.write(jsonDocument(call === undefined ? { record } : { record, call: callJson(call) }));
  }
  const style = styleFor(context, context.stdout);
  const record = toJson(AuditRecordSchema, entry.record) as JsonObject;
  context.stdout.write(readable({ index, ...record, time: timeAndAge(entry.record.time, context.now()) }, style));
  if (call !== undefined) context.stdout.write(`\n${describeCall(call, style, context.now())}`);
}

/** Reads a page of the log. */
function recordsFrom({ audit }: Session, which: { callId: string; newestFirst: boolean }) {
  return async (pageToken: string, room: number): Promise<Page<LogEntry>> => {
    const page = await audit.listRecords({ ...which, pageToken, pageSize: pageSize(room, 1000) });
    return { items: page.entries, nextPageToken: page.nextPageToken };
  };
}

async function verify(flags: LogFlags & { witness: string[]; json?: true }, context: CommandContext): Promise<void> {
  const witness = await Promise.all(flags.witness.map(readWitness));
  const log = await findLog(flags, context);
  try {
    const report = await verifyLog(withProgress(log.source, context), { verifierKey: log.key, witness });
    if (flags.json) context.stdout.write(jsonDocument({ ...reportJson(report), from: log.from }));
    else
      context.stdout.write(
        `${renderReport(report, styleFor(context, context.stdout))}\nread from ${visibleLine(log.from)}\n`,
      );
    if (!report.ok) context.setExitCode(ExitCode.AUDIT);
  } finally {
    await log.close();
  }
}

async function readWitness(path: string): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch (error: unknown) {
    throw new UsageError(`--witness: ${path} cannot be read`, [], { cause: error });
  }
}

async function proof(
  session: Session,
  index: number | undefined,
  flags: ProofFlags,
  context: CommandContext,
): Promise<void> {
  const wanted = index ?? (await lastRecord(session, flags.call));
  const answer = await session.audit.getInclusionProof({ index: BigInt(wanted) });
  if (flags.leaf !== undefined) await writeFile(flags.leaf, answer.entry?.leaf ?? new Uint8Array());
  context.stdout.write(flags.json ? jsonDocument(bundleJson(answer)) : safeFor(context.stdout, answer.text));
}

async function lastRecord(session: Session, callId: string | undefined): Promise<number> {
  if (callId === undefined) throw new UsageError("say which record: an index, or --call ID");
  const last = (await readAll(recordsFrom(session, { callId, newestFirst: false }))).at(-1);
  if (last !== undefined) return Number(last.index);
  throw fault(
    ErrorReason.NOT_FOUND,
    { resource: `calls/${callId}` },
    { message: `the log has no record about ${callId}` },
  );
}

async function check(path: string, flags: CheckFlags, context: CommandContext): Promise<void> {
  const key = flags.key ?? keyPathIn((await readProfile(dataDir(context.env)))?.stateDir || dataDir(context.env));
  const result = checkProof(await readBundle(path, flags.leaf), await readKey(key));
  if (!result.ok) context.setExitCode(ExitCode.AUDIT);
  if (flags.json) {
    const { record: _record, ...rest } = { record: undefined, ...result };
    context.stdout.write(jsonDocument(rest));
    return;
  }
  const style = styleFor(context, context.stdout);
  if (!result.ok) return void context.stdout.write(`${style.red("The proof does not hold:")} ${result.why}\n`);
  const what = result.record === undefined ? "" : `: ${visibleLine(eventText(result.record))}`;
  const where = `record ${result.index} of ${result.size} in ${visibleLine(result.origin)}`;
  context.stdout.write(`${style.green("The proof holds:")} ${where}${what}\n`);
}
