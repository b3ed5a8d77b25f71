import { timestampMs } from "@bufbuild/protobuf/wkt";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import {
  type Device,
  LinkState,
  ModeSchema,
  SandboxLevel,
  SandboxLevelSchema,
} from "../../gen/ts/reeve/device/v1/device_pb.ts";
import { reasonOf } from "../../lib/fault/fault.ts";
import { verifyCheckpointByAny } from "../../lib/sign/checkpoint.ts";
import { parseVkeys } from "../../lib/sign/vkeys.ts";
import { keyPathIn, readKey } from "../audit/find-log.ts";
import { listDevices, ownerText } from "../device/describe-device.ts";
import { describeError } from "../errors/describe-error.ts";
import { enumName } from "../print/enum-name.ts";
import { SOON_MS } from "../print/expiry.ts";
import { timeText } from "../print/time.ts";
import type { Session } from "../session.ts";
import { broken, type Finding, note, ok } from "./finding.ts";

/** What the control plane answers a caller with a token. */
export async function checkPlane(session: Session, now: number): Promise<Finding[]> {
  const devices = await checkDevices(session, now);
  if (!session.hasPolicy) return [...devices, note("policy", "its address is not known", "set REEVE_POLICY_URL")];
  return [
    ...devices,
    ...(await asked("policy file", () => checkPolicy(session))),
    ...(await asked("audit log", () => checkLog(session))),
  ];
}

async function checkDevices(session: Session, now: number): Promise<Finding[]> {
  let devices: readonly Device[];
  try {
    devices = (await listDevices(session)).items;
  } catch (error: unknown) {
    const known = reasonOf(error) !== ErrorReason.UNAUTHENTICATED;
    const todo = known
      ? undefined
      : "create one with `reeve token create` where the control plane is, and set REEVE_TOKEN";
    return [broken("token", describeError(error).message, todo)];
  }
  const online = devices.some((device) => device.link === LinkState.ONLINE);
  const none = online
    ? []
    : [broken("devices", "none is linked", "start one with `reeve serve device`, or `reeve up`")];
  return [ok("token", "accepted"), ...devices.flatMap((device) => deviceFindings(device, now)), ...none];
}

function deviceFindings(device: Device, now: number): Finding[] {
  const check = `device ${device.name}`;
  if (device.link !== LinkState.ONLINE) {
    const offline = note(check, `not linked since ${timeText(device.lastSeenTime)}`, "is its agent running?");
    return [offline, ...ownerFindings(check, device, now)];
  }
  const missing = Map.groupBy(device.unavailable, ({ why }) => why);
  const text = `online, mode ${enumName(ModeSchema, device.mode)}, ${device.tools.length} tools, ${device.platform}`;
  return [
    ok(check, text),
    sandboxFinding(check, device),
    ...ownerFindings(check, device, now),
    ...[...missing].map(([why, tools]) => note(check, `not offered: ${tools.map(({ tool }) => tool).join(", ")}`, why)),
  ];
}

/** The owner's manifest of a device: whether it holds, will soon hold no more, and can be kept. */
function ownerFindings(check: string, device: Device, now: number): Finding[] {
  const { owner, sandbox } = device;
  if (owner === undefined) return [];
  const text = `manifest: ${ownerText(owner, now)}`;
  const todo = "`reeve manifest edit` makes a new edition; the device keeps it from its next start on";
  const end = owner.expireTime === undefined ? 0 : timestampMs(owner.expireTime);
  const state =
    now >= end
      ? broken(check, `${text}: it refuses every call`, todo)
      : end - now < SOON_MS
        ? note(check, text, todo)
        : ok(check, text);
  if (sandbox >= owner.sandbox) return [state];
  return [
    state,
    broken(
      check,
      "it cannot keep the sandbox level that its owner's manifest demands, and refuses every call",
      raise(device),
    ),
  ];
}

function sandboxFinding(check: string, device: Device): Finding {
  const { sandbox } = device;
  if (sandbox === SandboxLevel.READ_ONLY) {
    return ok(
      check,
      "sandbox up to read_only: programs that look at files run without a person, and see the granted folders only",
    );
  }
  const text = `sandbox ${enumName(SandboxLevelSchema, sandbox)}: what may run only in one waits for a person, or is refused`;
  return note(check, text, raise(device));
}

/** What raises the level that a device can keep. */
function raise({ platform, sandboxShortfall }: Device): string {
  if (!platform.startsWith("linux/")) return "there is a sandbox on Linux only";
  const why = sandboxShortfall === "" ? "its log says what is missing" : `what is missing: ${sandboxShortfall}`;
  return `install bubblewrap 0.8 or newer (Debian, Ubuntu: apt-get install bubblewrap) and start the device agent again; ${why}`;
}

/** What a caller may not ask is no finding of a broken plane. */
async function asked(check: string, ask: () => Promise<Finding>): Promise<Finding[]> {
  try {
    return [await ask()];
  } catch (error: unknown) {
    const { message } = describeError(error);
    return [reasonOf(error) === ErrorReason.ROLE_REQUIRED ? note(check, message) : broken(check, message)];
  }
}

async function checkPolicy({ policy }: Session): Promise<Finding> {
  const { version, refused } = await policy.getPolicy({});
  if (refused === "") return ok("policy file", `version ${version}`);
  return broken(
    "policy file",
    `a newer file was refused, version ${version} stays: ${refused}`,
    "`reeve policy check FILE` shows where",
  );
}

async function checkLog({ audit, stateDir }: Session): Promise<Finding> {
  const { checkpoint, verifierKey } = await audit.getCheckpoint({});
  if (checkpoint === undefined) return note("audit log", "no checkpoint has been signed yet");
  const kept = stateDir === undefined ? undefined : await readKey(keyPathIn(stateDir)).catch(() => undefined);
  const keys = parseVkeys(kept ?? verifierKey);
  const result = keys && verifyCheckpointByAny(checkpoint.note, keys);
  if (result?.ok !== true || result.checkpoint.size !== Number(checkpoint.size)) {
    return broken("audit log", "its newest checkpoint does not verify", "`reeve audit verify` looks closer");
  }
  return ok("audit log", `${checkpoint.size} records, newest checkpoint signed ${timeText(checkpoint.time)}`);
}
