import { type Command, Option } from "commander";
import { MissedFiringsSchema, OverlapSchema } from "../../gen/ts/reeve/schedule/v1/schedule_service_pb.ts";
import { keepRest } from "../call/run-options.ts";
import type { CommandContext } from "../command-context.ts";
import { withConnection, withOperator, withSession } from "../connection-options.ts";
import { type ListFlags, withJson, withList } from "../list-options.ts";
import { enumNames } from "../print/enum-name.ts";
import { type AddFlags, addSchedule, addUsage } from "../schedule/add.ts";
import { listSchedules, printRun, printSchedule } from "../schedule/show.ts";
import type { Session } from "../session.ts";
import type { TargetFlags } from "../target.ts";

type OneFlags = TargetFlags & { json?: true };

/** Registers `reeve schedule` with add, list, show, pause, resume, remove and run. */
export function registerSchedule(program: Command, context: CommandContext): void {
  const schedule = keepRest(program.command("schedule")).description(
    "Call tools at set times, with no person watching. Each schedule calls as a workflow of its own, which has none of its\n" +
      "maker's rights: what policy holds waits for a person, as any held call does. Changing schedules takes an operator.",
  );
  const choice = (flags: string, text: string, names: readonly string[]) => new Option(flags, text).choices(names);
  const add = keepRest(withJson(withConnection(schedule.command("add").allowUnknownOption().argument("[words...]"))))
    .usage(addUsage)
    .description("Make a schedule. The call is typed as for `reeve call`, after --.")
    .requiredOption("--name <name>", "its name: small letters, digits and -, at most 32")
    .addOption(
      new Option("--cron <expression>", 'minute, hour, day, month, day of the week: "0 3 * * 1-5"').conflicts("every"),
    )
    .option("--time-zone <zone>", "the zone of --cron, such as Europe/Berlin. Default: this machine's")
    .option("--every <duration>", "so often, from now on, such as 15m; at least 10s")
    .addOption(
      choice("--missed <what>", "times at which no registry ran. Default skip", enumNames(MissedFiringsSchema)),
    )
    .addOption(
      choice("--overlap <what>", "while the call before has not ended. Default forbid", enumNames(OverlapSchema)),
    );
  add.action((words: string[], flags: AddFlags) => addSchedule(words, flags, context));
  withList(
    withConnection(schedule.command("list").description("List the schedules, with their next and last firing.")),
  ).action((flags: TargetFlags & ListFlags) => listSchedules(flags, context));
  const one = (name: string, description: string) =>
    withJson(withConnection(schedule.command(name).argument("<schedule>", "its name"))).description(description);
  one("show", "Show one schedule: what it calls, when it fires next, and its newest firings.").action(
    (name: string, flags: OneFlags) =>
      withSession(context, flags, async ({ schedules }) =>
        printSchedule((await schedules.getSchedule({ name })).schedule, flags, context),
      ),
  );
  const change = (
    verb: string,
    description: string,
    run: (session: Session, name: string, flags: OneFlags) => Promise<void>,
  ) =>
    one(verb, description).action((name: string, flags: OneFlags) =>
      withOperator(context, flags, (session) => run(session, name, flags)),
    );
  change("pause", "Fire no more until it is resumed; what runs goes on.", async ({ schedules }, name, flags) =>
    printSchedule((await schedules.pauseSchedule({ name })).schedule, flags, context),
  );
  change("resume", "Fire again, from the next time on.", async ({ schedules }, name, flags) =>
    printSchedule((await schedules.resumeSchedule({ name })).schedule, flags, context),
  );
  change(
    "remove",
    "Remove a schedule; what runs goes on, and its calls stay on record.",
    async ({ schedules }, name) => {
      await schedules.deleteSchedule({ name });
      context.stderr.write(`reeve: the schedule ${name} is removed\n`);
    },
  );
  change(
    "run",
    "Fire now, besides its times. Ends with 0 once the call is on record, whatever became of it.",
    async (session, name, flags) => printRun((await session.schedules.runSchedule({ name })).firing, flags, context),
  );
}
