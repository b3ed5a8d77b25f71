import { type Command, Option } from "commander";
import { isPending } from "../../client/approvals.ts";
import {
  type Approval,
  ApprovalSchema,
  type ApprovalSpec,
  ApprovalState,
  ApprovalStateSchema,
} from "../../gen/ts/reeve/approval/v1/approval_pb.ts";
import { type ApprovalFullText, ApprovalFullTextSchema } from "../../gen/ts/reeve/approval/v1/approval_service_pb.ts";
import { askForApproval } from "../approval/ask.ts";
import { approve, deny, readApproval, readFullText } from "../approval/decide.ts";
import { renderDetails, renderFullText, renderSummary, whereText } from "../approval/summary.ts";
import { watchApprovals } from "../approval/watch.ts";
import { callLine } from "../call/call-line.ts";
import type { CommandContext } from "../command-context.ts";
import { withConnection, withSession } from "../connection-options.ts";
import { UsageError } from "../errors/usage-error.ts";
import { noteListed } from "../list-notes.ts";
import { type HistoryFlags, isSince, pageSize, withHistory, withJson } from "../list-options.ts";
import { enumName, enumNames, enumValue } from "../print/enum-name.ts";
import { jsonDocument, wholeJson } from "../print/json.ts";
import { nameOr } from "../print/named-id.ts";
import { readPages } from "../print/pages.ts";
import { canAsk } from "../print/prompt.ts";
import { styleFor } from "../print/style.ts";
import { listTable } from "../print/table.ts";
import { ageText } from "../print/time.ts";
import type { Session } from "../session.ts";
import type { TargetFlags } from "../target.ts";

interface OneFlags extends TargetFlags {
  json?: true;
  comment?: string;
  yes?: true;
  full?: true;
}

/** Registers `reeve approval` with list, show, approve, deny and watch. */
export function registerApproval(program: Command, context: CommandContext): void {
  const approval = program.command("approval").description("List, show and decide held calls.");
  const list = approval.command("list").description("List approvals, newest first.");
  withHistory(withConnection(list))
    .addOption(new Option("--state <state>", "only approvals in this state").choices(enumNames(ApprovalStateSchema)))
    .action((flags: TargetFlags & HistoryFlags & { state?: string }) => listApprovals(flags, context));
  const one = (name: string, description: string) =>
    withJson(
      withConnection(approval.command(name).description(description).argument("<approval>", "the approval's id")),
    );
  const run = (verb: (session: Session, id: string, flags: OneFlags, context: CommandContext) => Promise<void>) => {
    return (id: string, flags: OneFlags) => withSession(context, flags, (session) => verb(session, id, flags, context));
  };
  one("show", "Show what exactly would run, and where the approval stands.")
    .option(
      "--full",
      "show every value in full, also where the summary is abridged; with --json as `fullText` beside `approval`",
    )
    .action(run(show));
  one("approve", "Say yes: the call runs. Shows all that would run, and asks before it is approved.")
    .option("--comment <text>", "what you want to say, for the record")
    .option("-y, --yes", "do not ask again")
    .action(run(sayYes));
  one("deny", "Say no: the call never runs.")
    .option("--comment <text>", "what you want to say, for the record and the caller")
    .action(run(sayNo));
  const watching = approval.command("watch").description("Show approvals as they come; on a terminal, decide each.");
  withJson(withConnection(watching)).action((flags: OneFlags) =>
    withSession(context, flags, (session) => watchApprovals(session, flags.json === true, context)),
  );
}

async function listApprovals(
  flags: TargetFlags & HistoryFlags & { state?: string },
  context: CommandContext,
): Promise<void> {
  const state = enumValue<ApprovalState>(ApprovalStateSchema, flags.state ?? "") ?? ApprovalState.UNSPECIFIED;
  const { limit, pageToken, since } = flags;
  const isWanted = (approval: Approval) => isSince(approval.createTime, since);
  const { items: found, nextPageToken } = await withSession(context, flags, ({ approvals }) =>
    readPages(
      async (token, room) => {
        const page = await approvals.listApprovals({ state, pageToken: token, pageSize: pageSize(room, 250) });
        return { items: page.approvals, nextPageToken: page.nextPageToken };
      },
      { limit, pageToken, isWanted },
    ),
  );
  if (flags.json) {
    const approvals = found.map((approval) => wholeJson(ApprovalSchema, approval));
    context.stdout.write(jsonDocument({ approvals, nextPageToken }));
    return;
  }
  const columns = ["APPROVAL", "STATE", "WHAT", "DEVICE", "ASKED BY", "ASKED", "EXPIRES", "DECIDED BY"];
  const rows = found.map((approval) => rowOf(approval, context.now()));
  const colors = { STATE: { pending: "yellow" } } as const;
  context.stdout.write(listTable(columns, rows, context, { keep: ["APPROVAL"], colors }));
  noteListed({ things: "approvals", shown: found.length, nextPageToken }, context);
}

function rowOf({ id, spec, status, createTime, expireTime }: Approval, now: number): string[] {
  return [
    id,
    enumName(ApprovalStateSchema, status?.state),
    spec ? whatText(spec) : "",
    spec ? whereText(spec) : "",
    nameOr(spec?.principalName ?? "", spec?.principalId ?? ""),
    ageText(createTime, now),
    // One that was decided, or whose call has ended, has no end before it any more.
    status?.state === ApprovalState.PENDING ? ageText(expireTime, now) : "",
    nameOr(status?.decidedByName ?? "", status?.decidedBy ?? ""),
  ];
}

/** The call in one line, with what it stands for on its device where that was looked at. */
function whatText({ tool, arguments: args, preview }: ApprovalSpec): string {
  return preview === "" ? callLine(tool, args) : `${callLine(tool, args)} (${preview})`;
}

async function show(session: Session, id: string, flags: OneFlags, context: CommandContext): Promise<void> {
  const approval = await readApproval(session, id);
  const fullText = flags.full ? await readFullText(session, id) : undefined;
  if (flags.json) return printJson(approval, context, fullText);
  const style = styleFor(context, context.stdout);
  context.stdout.write(`${renderSummary(approval, style)}\n\n${renderDetails(approval, style, fullText)}\n`);
}

async function sayYes(session: Session, id: string, flags: OneFlags, context: CommandContext): Promise<void> {
  if (flags.yes !== true && !canAsk(context)) {
    throw new UsageError("there is no terminal to ask on", [
      `to approve what \`reeve approval show ${id}\` shows, add --yes`,
    ]);
  }
  if (flags.yes !== true) {
    const comment = flags.comment ?? "";
    const answer = await askForApproval({ session, context, approvalId: id, comment });
    context.stderr.write(answer === "undecided" ? "Not decided.\n" : "");
    return finish(await readApproval(session, id), flags, context);
  }
  const approval = await readApproval(session, id);
  const style = styleFor(context, context.stderr);
  const fullText = approval.spec?.isAbridged ? await readFullText(session, id) : undefined;
  context.stderr.write(`${renderSummary(approval, style)}\n${fullText ? `${renderFullText(fullText, style)}\n` : ""}`);
  finish(await approve(session, { approval, fullText, comment: flags.comment }), flags, context);
}

async function sayNo(session: Session, id: string, flags: OneFlags, context: CommandContext): Promise<void> {
  const denied = await deny(session, id, flags.comment);
  finish(denied ?? (await readApproval(session, id)), flags, context);
}

function finish(approval: Approval, flags: OneFlags, context: CommandContext): void {
  if (flags.json) printJson(approval, context);
  else if (!isPending(approval))
    context.stdout.write(`${approval.id} ${enumName(ApprovalStateSchema, approval.status?.state)}\n`);
}

function printJson(approval: Approval, context: CommandContext, fullText?: ApprovalFullText): void {
  const shown = wholeJson(ApprovalSchema, approval);
  context.stdout.write(
    jsonDocument(
      fullText === undefined ? shown : { approval: shown, fullText: wholeJson(ApprovalFullTextSchema, fullText) },
    ),
  );
}
