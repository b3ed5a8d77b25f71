import { randomBytes } from "node:crypto";
import type { JsonObject } from "@bufbuild/protobuf";
import type { Tool } from "../../gen/ts/reeve/tool/v1/tool_pb.ts";
import { type CallWords, takenNames } from "../call/call-words.ts";
import { findTool } from "../call/find-tool.ts";
import { readInput } from "../call/input.ts";
import { watchInterrupts } from "../call/interrupts.ts";
import type { CommandContext } from "../command-context.ts";
import { UsageError } from "../errors/usage-error.ts";
import { readAll } from "../print/pages.ts";
import { queueSeconds } from "../queue/queue-option.ts";
import type { Session } from "../session.ts";
import { followFanOut } from "./follow.ts";
import { personView } from "./person-view.ts";
import { jsonView } from "./view.ts";
import { readFanOutOptions } from "./words.ts";

/** What running a fan-out needs. */
export interface RunFanOutOptions {
  session: Session;
  tool: string;
  words: CallWords;
  /** How long a human is waited for, in milliseconds. */
  waitMs: number;
  context: CommandContext;
}

/**
 * Calls a tool on many devices and shows how it goes: a line for each device, or with `--json` one document a line for each
 * event, the summary last. Ctrl-C leaves: no further wave is started, and it is said what goes on.
 */
export async function runFanOut({ session, tool: name, words, waitMs, context }: RunFanOutOptions): Promise<void> {
  if (words.noWait || words.callId !== undefined) {
    throw new UsageError("--no-wait and --call-id are for a call to one device; a fan-out has --fan-out-id");
  }
  const { fanOutId = `cli-${randomBytes(12).toString("hex")}`, ...chosen } = readFanOutOptions(words.extra);
  const tool = await toolForMany(session, chosen.devices ?? [], name);
  const params = await readInput(words, tool, context, takenNames());
  const interrupts = watchInterrupts(context, "no further wave is started; Ctrl-C again leaves at once");
  const view = words.output === "json" ? jsonView(context) : personView({ session, tool, context, fanOutId });
  try {
    const summary = await followFanOut({
      client: session.fanOut,
      request: { ...chosen, ...orderOf(words, params), tool: name, fanOutId, waitMs: Math.max(1, waitMs) },
      signal: interrupts.signal,
      onEvent: view.take,
    });
    await view.settled();
    if (summary === undefined) return view.left();
    view.end(summary);
  } finally {
    interrupts.close();
    await view.settled();
  }
}

function orderOf(words: CallWords, params: JsonObject) {
  const { purpose = "" } = words;
  return { params, purpose, client: "cli", queueSeconds: queueSeconds(words.extra.get("queue")) };
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
