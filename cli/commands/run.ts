import { type Command, Option } from "commander";
import { type Run, RunSchema, RunState, RunStateSchema } from "../../gen/ts/reeve/agent/v1/run_pb.ts";
import type { CommandContext } from "../command-context.ts";
import { withConnection, withSession } from "../connection-options.ts";
import { noteListed } from "../list-notes.ts";
import {
  type HistoryFlags,
  isSince,
  pageSize,
  parseCount,
  parseIndex,
  withHistory,
  withJson,
} from "../list-options.ts";
import { enumName, enumNames, enumValue } from "../print/enum-name.ts";
import { jsonDocument, wholeJson } from "../print/json.ts";
import { nameOr } from "../print/named-id.ts";
import { readPages } from "../print/pages.ts";
import { readable } from "../print/readable.ts";
import { styleFor } from "../print/style.ts";
import { listTable } from "../print/table.ts";
import { ageText } from "../print/time.ts";
import { readText } from "../read-text.ts";
import { gather } from "../repeatable.ts";
import { runFacts } from "../run/run-text.ts";
import { type StartFlags, start } from "../run/start.ts";
import { type WatchFlags, watch } from "../run/watch.ts";
import type { Session } from "../session.ts";
import type { TargetFlags } from "../target.ts";

interface OneFlags extends TargetFlags {
  json?: true;
}

interface ListFlags extends TargetFlags, HistoryFlags {
  state?: string;
}

/** Registers `reeve run` with start, list, get, watch, cancel and answer. */
export function registerRun(program: Command, context: CommandContext): void {
  const run = program
    .command("run")
    .description("Start, list, watch, cancel and answer runs: models that work with tools in the agent service.");
  registerStart(run, context);
  withHistory(withConnection(run.command("list").description("List runs, newest first.")))
    .addOption(new Option("--state <state>", "only those in this state").choices(enumNames(RunStateSchema)))
    .action((flags: ListFlags) => list(flags, context));
  const one = <F extends OneFlags>(
    command: Command,
    description: string,
    verb: (session: Session, id: string, flags: F) => Promise<void>,
  ) =>
    withJson(withConnection(command.argument("<run>", "the run's id")))
      .description(description)
      .action((id: string, flags: F) => withSession(context, flags, (session) => verb(session, id, flags)));
  one(
    run.command("get"),
    "Show one run: what was asked, its calls, what it waits for, how it ended.",
    async (session, runId, flags) => print((await session.runs.getRun({ runId })).run, flags, context),
  );
  one<OneFlags & WatchFlags>(
    run.command("watch").addOption(new Option("--from <n>", "from this event's number on").argParser(parseIndex)),
    "Follow one run to its end, over restarts; with --json a line for each event. The exit code is that of its end.",
    (session, runId, flags) => watch(session, runId, flags, context),
  );
  one(run.command("cancel"), "Cancel one run, and its calls that run or are held.", async (session, runId, flags) =>
    print((await session.runs.cancelRun({ runId })).run, flags, context),
  );
  withJson(
    withConnection(
      run
        .command("answer")
        .argument("<run>", "the run's id")
        .argument("<question>", "the question's id")
        .argument("[text...]", "the answer; left out: standard input"),
    ),
  )
    .description("Answer what the model of a run asks. It approves nothing: `reeve approval approve` does.")
    .action((runId: string, questionId: string, words: string[], flags: OneFlags) =>
      withSession(context, flags, async ({ runs }) => {
        const text = words.length > 0 ? words.join(" ") : await readText(context, "answer");
        print((await runs.answerRun({ runId, questionId, text })).run, flags, context);
      }),
    );
}

function registerStart(run: Command, context: CommandContext): void {
  withJson(withConnection(run.command("start").argument("[prompt...]", "what to do; left out: standard input")))
    .description("Start a run. It goes on in the agent service, as an agent of its own; prints the run's id.")
    .option("--agent <name>", "the agent's configuration: a file in the folder of agents")
    .option(
      "-d, --device <name>",
      "a device it may use; may be repeated. Default: the agent's, else all that are online",
      gather,
      [],
    )
    .option("--tools <names>", "the tools it may use, comma-separated. Default: all")
    .option("--model <name>", "the model, as provider/name")
    .option("--system <text>", "the system prompt")
    .addOption(new Option("--max-turns <n>", "the most turns it may take. Default 25").argParser(parseCount))
    .option("--max-wait <duration>", "how long a held call or a question is waited for. Default 7d")
    .option("--durable", "go on after the death of any process; fails where there is no engine for that")
    .option("--no-durable", "end with the process that it runs in")
    .option("--untrusted", "the prompt is not to be trusted: the run gets no devices")
    .option("--ask", "the model may ask questions, which `reeve run answer` answers")
    .addOption(
      new Option("--on-device-gone <what>", "what becomes of a call whose device is offline").choices([
        "report",
        "queue",
      ]),
    )
    .option("--purpose <text>", "why: shown to the person who decides about its calls")
    .option("--id <id>", "the run's id, so that starting it again is safe")
    .option("-w, --watch", "follow it to its end")
    .action((words: string[], flags: StartFlags) =>
      withSession(context, flags, (session) => start(session, words, flags, context)),
    );
}

async function list(flags: ListFlags, context: CommandContext): Promise<void> {
  const { limit, pageToken, since, state = "" } = flags;
  const part = { limit, pageToken, isWanted: (one: Run) => isSince(one.createTime, since) };
  const wanted = enumValue<RunState>(RunStateSchema, state) ?? RunState.UNSPECIFIED;
  const { items, nextPageToken } = await withSession(context, flags, ({ runs }) =>
    readPages(async (token, room) => {
      const page = await runs.listRuns({ pageToken: token, pageSize: pageSize(room, 250), state: wanted });
      return { items: page.runs, nextPageToken: page.nextPageToken };
    }, part),
  );
  if (flags.json) {
    const runs = items.map((one) => wholeJson(RunSchema, one));
    return void context.stdout.write(jsonDocument({ runs, nextPageToken }));
  }
  const rows = items.map((one) => [
    enumName(RunStateSchema, one.status?.state),
    one.spec?.prompt ?? "",
    one.spec?.model ?? "",
    nameOr(one.principalName, one.principalId),
    ageText(one.createTime, context.now()),
    one.id,
  ]);
  const colors = {
    STATE: { succeeded: "green", waiting: "yellow", running: "yellow", failed: "red", interrupted: "red" },
  } as const;
  const columns = ["STATE", "PROMPT", "MODEL", "BY", "STARTED", "RUN"];
  context.stdout.write(listTable(columns, rows, context, { keep: ["RUN"], colors }));
  noteListed({ things: "runs", shown: items.length, nextPageToken }, context);
}

function print(run: Run | undefined, flags: OneFlags, context: CommandContext): void {
  if (run === undefined) return;
  if (flags.json) return void context.stdout.write(jsonDocument(wholeJson(RunSchema, run)));
  context.stdout.write(readable(runFacts(run, context.now()), styleFor(context, context.stdout)));
}
