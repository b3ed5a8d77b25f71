import { toJson } from "@bufbuild/protobuf";
import { type Command, InvalidArgumentError, Option } from "commander";
import { completeCall } from "../../client/complete-call.ts";
import { CallState, CallStateSchema } from "../../gen/ts/reeve/call/v1/call_pb.ts";
import { OutputSummarySchema } from "../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import { callsTable } from "../call/describe-call.ts";
import { callJson } from "../call/show-receipt.ts";
import type { CommandContext } from "../command-context.ts";
import { withConnection, withSession } from "../connection-options.ts";
import { lossText, type OutputFlags, printOutput } from "../job/output.ts";
import { noteListed } from "../list-notes.ts";
import { type ListFlags, pageSize, withJson, withList } from "../list-options.ts";
import { enumName } from "../print/enum-name.ts";
import { jsonDocument } from "../print/json.ts";
import { readPages } from "../print/pages.ts";
import { readable } from "../print/readable.ts";
import { styleFor } from "../print/style.ts";
import { timeAndAge } from "../print/time.ts";
import type { Session } from "../session.ts";
import type { TargetFlags } from "../target.ts";
import { cancelCall, parseSequence, watchOneCall } from "./call.ts";

interface OneFlags extends TargetFlags {
  json?: true;
}

/** Registers `reeve job` with list, status, output and cancel. */
export function registerJob(program: Command, context: CommandContext): void {
  const job = program
    .command("job")
    .description(
      "Look after calls that go on without their caller, such as those of `reeve call --no-wait`.\n" +
        "A job is a call, and its id is the call's.",
    );
  withList(withConnection(job.command("list")))
    .description("List the calls that run now, newest first.")
    .option("-d, --device <name>", "only calls on this device")
    .action((flags: TargetFlags & ListFlags & { device?: string }) =>
      withSession(context, flags, (session) => list(session, flags, context)),
    );
  withJson(withConnection(job.command("status")))
    .description("Show whether a job still runs, how it ended, and how much it has printed.")
    .argument("<call>", "the call's id")
    .action((id: string, flags: OneFlags) =>
      withSession(context, flags, (session) => status(session, id, flags, context)),
    );
  withJson(withConnection(job.command("output")))
    .description("Print what a job has printed so far, also after its end; with --json a line for each part.")
    .argument("<call>", "the call's id")
    .addOption(
      new Option("--from <sequence>", "begin with this chunk. Default: the first")
        .argParser(parseSequence)
        .default(0, "0"),
    )
    .addOption(new Option("--max-bytes <n>", "stop after about so many bytes. Default: all").argParser(parseBytes))
    .option("-f, --follow", "go on until the job ends; ends with its exit code")
    .action((id: string, flags: OneFlags & OutputFlags & { follow?: true }) =>
      withSession(context, flags, (session) =>
        flags.follow ? watchOneCall(session, id, flags, context) : printOutput(session, id, flags, context),
      ),
    );
  withJson(withConnection(job.command("cancel")))
    .description("Cancel a job: everything that it runs is killed.")
    .argument("<call>", "the call's id")
    .action((id: string, flags: OneFlags) =>
      withSession(context, flags, (session) => cancelCall(session, id, flags, context)),
    );
}

async function list(
  { registry }: Session,
  flags: ListFlags & { device?: string },
  context: CommandContext,
): Promise<void> {
  const filter = { state: CallState.DISPATCHED, device: flags.device ?? "" };
  const { items, nextPageToken } = await readPages(
    async (pageToken, room) => {
      const page = await registry.listCalls({ ...filter, pageToken, pageSize: pageSize(room, 250) });
      return { items: page.calls.map(completeCall), nextPageToken: page.nextPageToken };
    },
    { limit: flags.limit },
  );
  if (flags.json) return void context.stdout.write(jsonDocument({ jobs: items.map(callJson), nextPageToken }));
  context.stdout.write(callsTable(items, context));
  noteListed({ things: "jobs", shown: items.length, nextPageToken }, context);
}

async function status({ registry }: Session, callId: string, flags: OneFlags, context: CommandContext): Promise<void> {
  const found = (await registry.getCall({ callId })).call;
  if (found === undefined) return;
  const call = completeCall(found);
  // The first chunk alone: what is known of all of them comes with it.
  const { summary } = await registry.getCallOutput({ callId, maxBytes: 1 });
  if (flags.json) {
    const output = summary === undefined ? {} : { output: toJson(OutputSummarySchema, summary) };
    return void context.stdout.write(jsonDocument({ call: callJson(call), ...output }));
  }
  const facts = {
    job: call.id,
    state: enumName(CallStateSchema, call.status.state),
    tool: call.spec.tool,
    asked: timeAndAge(call.createTime, context.now()),
    ended: timeAndAge(call.status.endTime, context.now()),
    why: call.status.errorMessage,
    printed: `${summary?.bytes ?? 0} bytes in ${summary?.chunks ?? 0} chunks`,
    lost: lossText(summary),
  };
  context.stdout.write(readable(facts, styleFor(context, context.stdout)));
}

function parseBytes(text: string): number {
  const number = Number(text);
  if (/^\d{1,12}$/.test(text) && number > 0) return number;
  throw new InvalidArgumentError("It must be a whole number, at least 1.");
}
