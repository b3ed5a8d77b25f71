import type { Command } from "commander";
import {
  type Availability,
  type Capability,
  CapabilitySchema,
  MissingReasonSchema,
} from "../../gen/ts/reeve/capability/v1/capability_pb.ts";
import { RiskSchema } from "../../gen/ts/reeve/options/v1/capability_pb.ts";
import type { CommandContext } from "../command-context.ts";
import { withConnection, withSession } from "../connection-options.ts";
import { noteListed } from "../list-notes.ts";
import { withJson } from "../list-options.ts";
import { enumName } from "../print/enum-name.ts";
import { jsonDocument, wholeJson } from "../print/json.ts";
import { readAll } from "../print/pages.ts";
import { readable } from "../print/readable.ts";
import { styleFor } from "../print/style.ts";
import { listTable } from "../print/table.ts";
import type { TargetFlags } from "../target.ts";

interface CapabilityFlags extends TargetFlags {
  device?: string;
  json?: true;
}

/** Registers `reeve capability` with list and show. */
export function registerCapability(program: Command, context: CommandContext): void {
  const capability = program.command("capability").description("List and show what devices can allow callers to do.");
  const onDevice = (command: Command) =>
    withJson(withConnection(command.option("-d, --device <name>", "with whether this device has it, and why not")));
  onDevice(capability.command("list"))
    .description("List the capabilities, by name.")
    .action((flags: CapabilityFlags) => list(flags, context));
  onDevice(capability.command("show").argument("<capability>", "its name, such as fs.read"))
    .description("Show one capability: what it allows, its risk, and the tools that need it.")
    .action((name: string, flags: CapabilityFlags) => show(name, flags, context));
}

async function list(flags: CapabilityFlags, context: CommandContext): Promise<void> {
  const device = flags.device ?? "";
  const found = await withSession(context, flags, ({ registry }) =>
    readAll(async (pageToken) => {
      const page = await registry.listCapabilities({ device, pageToken });
      return { items: page.capabilities, nextPageToken: page.nextPageToken };
    }),
  );
  if (flags.json) {
    const capabilities = found.map((one) => wholeJson(CapabilitySchema, one));
    return void context.stdout.write(jsonDocument({ capabilities }));
  }
  const rows = found.map((one) => [
    one.name,
    enumName(RiskSchema, one.risk),
    traits(one),
    ...(device === "" ? [] : [availabilityText(one.availability)]),
    one.title,
    one.tools.join(" "),
  ]);
  const columns = ["CAPABILITY", "RISK", "TRAITS", ...(device === "" ? [] : ["AVAILABLE"]), "WHAT IT ALLOWS", "TOOLS"];
  context.stdout.write(listTable(columns, rows, context, { keep: ["CAPABILITY"] }));
  noteListed({ things: "capabilities", shown: found.length, nextPageToken: "" }, context);
}

async function show(name: string, flags: CapabilityFlags, context: CommandContext): Promise<void> {
  const { capability } = await withSession(context, flags, ({ registry }) =>
    registry.getCapability({ name, device: flags.device ?? "" }),
  );
  if (capability === undefined) return;
  if (flags.json) return void context.stdout.write(jsonDocument(wholeJson(CapabilitySchema, capability)));
  const facts = {
    capability: capability.name,
    title: capability.title,
    description: capability.description,
    risk: enumName(RiskSchema, capability.risk),
    traits: traits(capability),
    tools: capability.tools.join(", "),
    ...(capability.availability && { available: availabilityText(capability.availability) }),
  };
  context.stdout.write(readable(facts, styleFor(context, context.stdout)));
}

function traits({ readOnly, destructive }: Capability): string {
  return [readOnly ? "reads" : "acts", destructive ? "destructive" : ""].filter((word) => word !== "").join(", ");
}

function availabilityText(availability: Availability | undefined): string {
  if (availability === undefined) return "";
  const { available, reason, message } = availability;
  return available ? "yes" : `no: ${message || enumName(MissingReasonSchema, reason).replaceAll("_", " ")}`;
}
