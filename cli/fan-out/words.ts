import type { MessageInitShape } from "@bufbuild/protobuf";
import type { FanOutRequestSchema } from "../../gen/ts/reeve/fanout/v1/fan_out_service_pb.ts";
import { UsageError } from "../errors/usage-error.ts";
import type { HelpEntry } from "../flags/help.ts";

/** The options of `reeve call` that send a call to many devices. Each takes a value. */
export const FAN_OUT_WORDS = ["on", "devices", "wave", "canary", "max-devices", "stop-after", "fan-out-id"] as const;

/** Their help. */
export const fanOutHelp: readonly HelpEntry[] = [
  {
    term: "--on SELECTOR",
    text: "call every device with these labels, in the place of DEVICE, such as role=web,zone!=eu",
  },
  { term: "--devices NAME,…", text: "call these devices, in the place of DEVICE" },
  { term: "--wave N", text: "with --on or --devices: so many devices at a time. Default all" },
  { term: "--canary N", text: "so many devices first; the others wait for their success" },
  { term: "--max-devices N", text: "start nothing when there are more devices than this. Default 100" },
  { term: "--stop-after N", text: "start no further wave once so many calls have not succeeded. Default 1" },
  { term: "--fan-out-id ID", text: "its id: the same id with the same input goes on where it stood" },
];

/** True where what was typed says that a call goes to many devices. */
export function choosesMany(given: { has(name: string): boolean }): boolean {
  return given.has("on") || given.has("devices");
}

/** What the options of a fan-out come to. */
export type FanOutOptions = Pick<
  MessageInitShape<typeof FanOutRequestSchema>,
  "selector" | "devices" | "waveSize" | "canary" | "maxDevices" | "stopAfterFailures"
> & { fanOutId: string | undefined };

/** Reads the options of a fan-out. Throws a UsageError. */
export function readFanOutOptions(given: ReadonlyMap<string, string>): FanOutOptions {
  if (given.has("on") && given.has("devices")) throw new UsageError("--on and --devices exclude each other");
  const devices = given.get("devices")?.split(",") ?? [];
  if (devices.some((name) => name.trim() === "")) throw new UsageError("--devices: a name is empty");
  return {
    selector: given.get("on") ?? "",
    devices: devices.map((name) => name.trim()),
    waveSize: count(given, "wave"),
    canary: count(given, "canary"),
    maxDevices: count(given, "max-devices"),
    stopAfterFailures: count(given, "stop-after"),
    fanOutId: given.get("fan-out-id"),
  };
}

function count(given: ReadonlyMap<string, string>, name: string): number {
  const text = given.get(name);
  if (text === undefined) return 0;
  const number = Number(text);
  if (/^\d{1,4}$/.test(text) && number > 0 && number <= 1000) return number;
  throw new UsageError(`--${name}: ${JSON.stringify(text)} is no whole number from 1 to 1000`);
}
