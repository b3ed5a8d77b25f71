import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { OnDeviceGone, type Run, RunSchema, RunSpecSchema } from "../../gen/ts/reeve/agent/v1/run_pb.ts";
import { LinkState } from "../../gen/ts/reeve/device/v1/device_pb.ts";
import type { CommandContext } from "../command-context.ts";
import { UsageError } from "../errors/usage-error.ts";
import { parseDuration } from "../flags/duration.ts";
import { visibleLine } from "../print/escape.ts";
import { jsonDocument, wholeJson } from "../print/json.ts";
import { readAll } from "../print/pages.ts";
import { readText } from "../read-text.ts";
import type { Session } from "../session.ts";
import type { TargetFlags } from "../target.ts";
import { watch } from "./watch.ts";

/** The options of `reeve run start`. */
export interface StartFlags extends TargetFlags {
  agent?: string;
  device: string[];
  tools?: string;
  model?: string;
  system?: string;
  maxTurns?: number;
  maxWait?: string;
  durable?: boolean;
  untrusted?: true;
  ask?: true;
  onDeviceGone?: "report" | "queue";
  purpose?: string;
  id?: string;
  watch?: true;
  json?: true;
}

/** Starts a run, and follows it where that is asked for. */
export async function start(
  session: Session,
  words: readonly string[],
  flags: StartFlags,
  context: CommandContext,
): Promise<void> {
  const prompt = words.length > 0 ? words.join(" ") : await readText(context, "prompt");
  if (prompt.trim() === "") throw new UsageError("there is no prompt");
  const devices =
    flags.device.length > 0 || flags.agent || flags.untrusted ? flags.device : await onlineDevices(session);
  const spec = specOf(prompt, devices, flags);
  const { run, warnings } = await session.runs.startRun({ spec, runId: flags.id ?? "" });
  for (const warning of warnings) context.stderr.write(`reeve: ${visibleLine(warning)}\n`);
  if (run === undefined) return;
  if (flags.watch) {
    if (!flags.json) context.stderr.write(`reeve: run ${run.id}\n`);
    return watch(session, run.id, flags, context);
  }
  print(run, flags, context);
}

function print(run: Run, { json }: StartFlags, context: CommandContext): void {
  if (json) return void context.stdout.write(jsonDocument(wholeJson(RunSchema, run)));
  context.stdout.write(`${run.id}\n`);
  context.stderr.write(`reeve: started; \`reeve run watch ${run.id}\` follows it\n`);
}

function specOf(prompt: string, devices: readonly string[], flags: StartFlags) {
  const { maxTurns, maxWait } = flags;
  const spec: MessageInitShape<typeof RunSpecSchema> = {
    prompt,
    agent: flags.agent ?? "",
    model: flags.model ?? "",
    system: flags.system ?? "",
    devices: [...devices],
    toolsAllowed: (flags.tools ?? "").split(",").filter((name) => name !== ""),
    onDeviceGone: flags.onDeviceGone === undefined ? OnDeviceGone.UNSPECIFIED : GONE[flags.onDeviceGone],
    purpose: flags.purpose ?? "",
    untrusted: flags.untrusted ?? false,
    mayAsk: flags.ask ?? false,
    ...(flags.durable !== undefined && { durable: flags.durable }),
    ...((maxTurns !== undefined || maxWait !== undefined) && {
      limits: { maxTurns: maxTurns ?? 0, ...(maxWait !== undefined && { maxWait: waitOf(maxWait) }) },
    }),
  };
  return create(RunSpecSchema, spec);
}

const GONE = { report: OnDeviceGone.REPORT, queue: OnDeviceGone.QUEUE } as const;

function waitOf(text: string): { seconds: bigint } {
  return { seconds: BigInt(Math.ceil(parseDuration(text, "--max-wait") / 1000)) };
}

/** As `reeve chat` does: all devices that are online now. */
async function onlineDevices({ registry }: Session): Promise<string[]> {
  const devices = await readAll(async (pageToken) => {
    const page = await registry.listDevices({ pageToken });
    return { items: page.devices, nextPageToken: page.nextPageToken };
  });
  return devices.flatMap(({ id, link }) => (link === LinkState.ONLINE ? [id] : []));
}
