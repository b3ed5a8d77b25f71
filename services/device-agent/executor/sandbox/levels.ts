import { SandboxLevel } from "../../../../gen/ts/reeve/device/v1/device_pb.ts";
import type { Isolation } from "./isolation.ts";

const LEVELS: Readonly<Record<Isolation, SandboxLevel>> = {
  none: SandboxLevel.NONE,
  workspace: SandboxLevel.WORKSPACE,
  read_only: SandboxLevel.READ_ONLY,
};

/** The level as manifests and receipts state it. */
export function levelOf(isolation: Isolation): SandboxLevel {
  return LEVELS[isolation];
}

/** The floor that a level stands for; undefined for a level that this agent does not know. */
export function floorOf(level: SandboxLevel | undefined): Isolation | undefined {
  if (level === undefined || level === SandboxLevel.UNSPECIFIED) return "none";
  return (Object.keys(LEVELS) as Isolation[]).find((isolation) => LEVELS[isolation] === level);
}
