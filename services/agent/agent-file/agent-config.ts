import type { OnDeviceGone, RunLimits } from "../../../gen/ts/reeve/agent/v1/run_pb.ts";
import type { Mode } from "../../../gen/ts/reeve/device/v1/device_pb.ts";

/** An agent, as its file configures it. What is left out in the file is undefined, or empty. */
export interface AgentConfig {
  readonly name: string;
  /** The file that says so. */
  readonly file: string;
  /** The model, as provider/name. */
  readonly model: string | undefined;
  /** The system prompt. */
  readonly system: string | undefined;
  /** The devices whose tools the agent gets, by id or name. Empty: none. */
  readonly devices: readonly string[];
  /** The tools that it gets, all of them known here or announced by a device ("plugin:tool"). Empty: all. */
  readonly toolsAllowed: readonly string[];
  readonly limits: RunLimits | undefined;
  readonly onDeviceGone: OnDeviceGone;
  /** Where the agent's own token is. Undefined: the service's own is used. */
  readonly token: TokenPlace | undefined;
  readonly deviceMesh: MeshConfig | undefined;
}

/** Where a token is kept; never the token. */
export type TokenPlace = { readonly file: string } | { readonly env: string };

/** What an enabled device_mesh block says beyond the agent's devices, tools and limits. */
export interface MeshConfig {
  readonly device: string;
  readonly mode: Mode;
  /** Where the device's agent listens, for the registry's setting. Never dialed from here. */
  readonly deviceAgentUrl: string | undefined;
  /** The variable that the address is from; undefined where it is from the file. */
  readonly urlFrom: string | undefined;
  readonly manifestId: string | undefined;
}

/** Something about an agent's file, where it stands. */
export interface FileNote {
  readonly file: string;
  /** The line, from 1. */
  readonly line: number;
  readonly message: string;
}
