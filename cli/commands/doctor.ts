import type { JsonValue } from "@bufbuild/protobuf";
import type { Command } from "commander";
import type { CommandContext } from "../command-context.ts";
import { withConfigOption } from "../config/load-config.ts";
import { withConnection } from "../connection-options.ts";
import type { Finding, FindingState } from "../doctor/finding.ts";
import { broken } from "../doctor/finding.ts";
import { checkLocally, messageOf } from "../doctor/local-checks.ts";
import { ExitCode } from "../exit-codes.ts";
import { findTarget } from "../find-target.ts";
import { withJson } from "../list-options.ts";
import { visibleLine } from "../print/escape.ts";
import { jsonDocument } from "../print/json.ts";
import { type Style, styleFor } from "../print/style.ts";
import { sessionAt } from "../session.ts";
import type { Target, TargetFlags } from "../target.ts";

interface DoctorFlags extends TargetFlags {
  json?: true;
}

/** Registers `reeve doctor`. */
export function registerDoctor(program: Command, context: CommandContext): void {
  withConfigOption(withJson(withConnection(program.command("doctor"))))
    .description("Check that everything works, and say what to do. Exit code 1 where something is broken.")
    .action((flags: DoctorFlags) => doctor(flags, context));
}

async function doctor(flags: DoctorFlags, context: CommandContext): Promise<void> {
  const findings: Finding[] = [];
  const style = styleFor(context, context.stdout);
  const report = (more: readonly Finding[]) => {
    findings.push(...more);
    if (!flags.json) for (const finding of more) context.stdout.write(findingText(finding, style));
  };
  report(await checkLocally(context));
  const { checkNats } = await import("../doctor/nats-check.ts");
  report(await checkNats(context));
  const target = await findTarget(context, flags).catch((error: unknown) => broken("control plane", messageOf(error)));
  if ("check" in target) report([target]);
  else await checkTarget(target, context, report);
  if (findings.some(({ state }) => state === "broken")) context.setExitCode(ExitCode.BROKEN);
  if (flags.json)
    context.stdout.write(jsonDocument({ findings: findings.map((finding): JsonValue => ({ ...finding })) }));
}

async function checkTarget(
  target: Target,
  context: CommandContext,
  report: (more: readonly Finding[]) => void,
): Promise<void> {
  const [{ checkService }, { checkPlane }] = await Promise.all([
    import("../doctor/service-checks.ts"),
    import("../doctor/plane-checks.ts"),
  ]);
  const registry = await checkService("registry", target.registry, context, {
    caFile: target.caFile,
    socketPath: target.sockets?.registry,
  });
  report(registry);
  const policy =
    target.policy === undefined
      ? []
      : await checkService("policy", target.policy, context, {
          caFile: target.caFile,
          socketPath: target.sockets?.policy,
        });
  report(policy);
  if ([...registry, ...policy].some(({ state }) => state === "broken")) return;
  const session = sessionAt(target);
  try {
    report(await checkPlane(session, context.now()));
  } finally {
    session.close();
  }
}

const MARKS: Readonly<Record<FindingState, (style: Style) => string>> = {
  ok: (style) => style.green("ok    "),
  note: (style) => style.yellow("note  "),
  broken: (style) => style.red("broken"),
};

function findingText({ check, state, text, todo }: Finding, style: Style): string {
  const head = `${MARKS[state](style)}  ${style.bold(visibleLine(check))}: ${visibleLine(text)}\n`;
  return todo === undefined ? head : `${head}        ${visibleLine(todo)}\n`;
}
