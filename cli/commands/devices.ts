import type { Command } from "commander";
import { type Device, DeviceSchema, LinkStateSchema, ModeSchema } from "../../gen/ts/reeve/device/v1/device_pb.ts";
import type { CommandContext } from "../command-context.ts";
import { withConnection, withSession } from "../connection-options.ts";
import { lockText } from "../device/lock-text.ts";
import { type ListFlags, pageSize, withList } from "../list-options.ts";
import { enumName } from "../print/enum-name.ts";
import { visibleLine } from "../print/escape.ts";
import { jsonDocument, wholeJson } from "../print/json.ts";
import { readAll } from "../print/pages.ts";
import { styleFor } from "../print/style.ts";
import { table } from "../print/table.ts";
import { timeText } from "../print/time.ts";
import type { Session } from "../session.ts";
import type { TargetFlags } from "../target.ts";

/** Registers `reeve devices`. */
export function registerDevices(program: Command, context: CommandContext): void {
  withList(withConnection(program.command("devices").description("List the devices, by name."))).action(
    (flags: TargetFlags & ListFlags) => devices(flags, context),
  );
}

/** All devices, by name. */
export function listDevices({ registry }: Pick<Session, "registry">, limit = Infinity): Promise<Device[]> {
  return readAll(async (pageToken, room) => {
    const page = await registry.listDevices({ pageToken, pageSize: pageSize(room, 1000) });
    return { items: page.devices, nextPageToken: page.nextPageToken };
  }, limit);
}

async function devices(flags: TargetFlags & ListFlags, context: CommandContext): Promise<void> {
  const found = await withSession(context, flags, (session) => listDevices(session, flags.limit));
  if (flags.json) {
    context.stdout.write(jsonDocument({ devices: found.map((device) => wholeJson(DeviceSchema, device)) }));
    return;
  }
  const style = styleFor(context, context.stdout);
  const columns = ["NAME", "ID", "LINK", "MODE", "PLATFORM", "TOOLS", "LAST SEEN", "LABELS"];
  const paint = (text: string, column: number) => {
    if (columns[column] !== "LINK") return text;
    if (text === "locked") return style.red(text);
    return text === "online" ? style.green(text) : text;
  };
  context.stdout.write(table(columns, found.map(rowOf), { style, paint }));
  for (const { name, lock } of found) {
    if (lock === undefined) continue;
    const why = lockText(lock);
    const how = `\`reeve device unlock ${name}\` lets it take part again`;
    context.stderr.write(`reeve: ${visibleLine(`${name} is locked${why === "" ? "" : `: ${why}`}`)}; ${how}\n`);
  }
}

function rowOf(device: Device): string[] {
  const labels = Object.entries(device.labels).map(([key, value]) => `${key}=${value}`);
  return [
    device.name,
    device.id,
    device.lock === undefined ? enumName(LinkStateSchema, device.link) : "locked",
    enumName(ModeSchema, device.mode),
    device.platform,
    String(device.tools.length),
    timeText(device.lastSeenTime),
    labels.join(" "),
  ];
}
