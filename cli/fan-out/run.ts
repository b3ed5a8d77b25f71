import type { JsonObject } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { newCallId } from "../../client/call-tool.ts";
import { followFanOut } from "../../client/fan-out.ts";
import type { Tool } from "../../gen/ts/reeve/tool/v1/tool_pb.ts";
import { findTool } from "../call/find-tool.ts";
import { readInput } from "../call/input.ts";
import { watchInterrupts } from "../call/interrupts.ts";
import type { RunFlags } from "../call/run-options.ts";
import type { CommandContext } from "../command-context.ts";
import { UsageError } from "../errors/usage-error.ts";
import { readAll } from "../print/pages.ts";
import type { Session } from "../session.ts";
import { personView } from "./person-view.ts";
import { jsonView } from "./view.ts";

/** What running a fan-out needs. */
export interface RunFanOutOptions {
  session: Session;
  tool: string;
  /** The tool's own words. */
  rest: readonly string[];
  flags: RunFlags;
  /** How long a human is waited for, in milliseconds. */
  waitMs: number;
  context: CommandContext;
}

/**
 * Calls a tool on many devices and shows how it goes: a line for each device, or with `--json` one document a line for each
 * event, the summary last. Ctrl-C cancels it, as it cancels a call.
 */
export async function runFanOut(options: RunFanOutOptions): Promise<void> {
  const { session, tool: name, rest, flags, waitMs, context } = options;
  if (flags.wait === false || flags.callId !== undefined) {
    throw new UsageError("--no-wait and --call-id are for a call to one device; a fan-out has --fanout-id");
  }
  const { fanoutId: fanOutId = newCallId("cli"), device: devices = [] } = flags;
  const tool = await toolForMany(session, devices, name);
  const params = await readInput({ input: flags.input, rest }, tool, context);
  const interrupts = watchInterrupts(context, "canceling it; Ctrl-C again leaves at once, and it goes on");
  const view = flags.json ? jsonView(context) : personView({ session, tool, context, fanOutId });
  try {
    const summary = await followFanOut({
      client: session.fanOut,
      fanOutId,
      spec: { ...specOf(flags, params), devices, tool: name },
      approvalWaitMs: waitMs,
      signal: interrupts.signal,
      onEvent: view.take,
    });
    await view.settled();
    if (summary === undefined) view.held();
    else view.end(summary);
  } finally {
    interrupts.close();
    await view.settled();
  }
}

function specOf(flags: RunFlags, params: JsonObject) {
  const { on: selector = "", wave = 0, canary = 0, maxDevices = 0, stopAfter = 0, queue = 0, purpose = "" } = flags;
  const waves = { waveSize: wave, canary, maxDevices, stopAfterFailures: stopAfter };
  return { selector, ...waves, params, purpose, client: "cli", queueTimeout: durationFromMs(queue) };
}

/** The tool as one of the devices offers it: the registry checks that it is the same on all. */
async function toolForMany({ registry }: Session, wanted: readonly string[], name: string): Promise<Tool> {
  const [first] = wanted;
  if (first !== undefined) return findTool(registry, first, name);
  const devices = await readAll(async (pageToken) => {
    const page = await registry.listDevices({ pageToken });
    return { items: page.devices, nextPageToken: page.nextPageToken };
  });
  const device = devices.find(({ tools }) => tools.includes(name)) ?? devices[0];
  if (device === undefined) {
    throw new UsageError("no device is known yet", ["`reeve device join-token NAME` lets one join"]);
  }
  return findTool(registry, device.id, name);
}
