import type { Command } from "commander";
import { completeCall } from "../../client/complete-call.ts";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { fault } from "../../lib/fault/fault.ts";
import { callFromWords } from "../call/run.ts";
import { asOperatorOption, type RunFlags, withWait } from "../call/run-options.ts";
import type { CommandContext } from "../command-context.ts";
import { withConnection, withOperator, withSession } from "../connection-options.ts";
import { withJson } from "../list-options.ts";
import type { Session } from "../session.ts";

/** What puts back what a call changed. */
const TOOL = "fs.undo";

/** Registers `reeve undo`. */
export function registerUndo(program: Command, context: CommandContext): void {
  const undo = program.command("undo").argument("<call>", "the call's id");
  withWait(
    undo.description(
      "Put back what a call changed of a device's files: a write, an edit, a move or a delete. This is a call of its own, of\n" +
        `the tool ${TOOL} on the same device: policy decides on it, a person may have to, and it is on record. The device keeps\n` +
        "the earlier state for 7 days, if it is not too large. It refuses, and changes nothing, where a file is no longer as the\n" +
        "call left it. An undo is undone by its own id.",
    ),
  )
    .option("--purpose <text>", "why this is requested, for the person who decides")
    .addOption(asOperatorOption());
  withConnection(withJson(undo)).action((id: string, flags: RunFlags) =>
    (flags.asOperator ? withOperator : withSession)(context, flags, (session) => undoCall(session, id, flags, context)),
  );
}

async function undoCall(session: Session, callId: string, flags: RunFlags, context: CommandContext): Promise<void> {
  const { call } = await session.registry.getCall({ callId });
  if (call === undefined) throw fault(ErrorReason.INTERNAL, {}, { message: "the registry answered without a call" });
  // The id that the device knows: a caller may have chosen a shorter one.
  const { id, spec } = completeCall(call);
  const input = JSON.stringify({ call: id });
  await callFromWords({ session, device: spec.deviceId, tool: TOOL, rest: [], flags: { ...flags, input }, context });
}
