import type { OwnerManifest } from "../../../../gen/ts/reeve/device/v1/owner_manifest_pb.ts";
import type { Plugin } from "../../../../lib/plugin/plugin.ts";
import { meets } from "../../executor/sandbox/isolation.ts";
import { floorOf } from "../../executor/sandbox/levels.ts";
import { isolationOf } from "./program.ts";

/** What an owner's manifest says of plugins. */
export type OwnerPins = Pick<OwnerManifest, "plugins" | "environment" | "sandbox">;

/**
 * Why an owner's manifest has something against a plugin. A server of it runs without a call, so that its level has to meet the
 * manifest's floor by itself. Pure.
 */
export function whyNotPinned(
  {
    manifest,
    digest,
  }: Pick<Plugin, "digest"> & { manifest: Pick<Plugin["manifest"], "name" | "envAllow" | "servers"> },
  owner: OwnerPins,
): string | undefined {
  const pinned = owner.plugins.find(({ name }) => name === manifest.name);
  if (pinned === undefined) return "the owner's manifest does not name it under plugins";
  if (pinned.digest !== digest) return `the owner's manifest pins it with another digest than ${digest}`;
  const more = manifest.envAllow.find((name) => !owner.environment.includes(name));
  if (more !== undefined)
    return `it asks for the variable ${more}, which the owner's manifest does not name under environment`;
  const floor = floorOf(owner.sandbox) ?? "read_only";
  const below = manifest.servers.find((server) => !meets(isolationOf(server), floor));
  return (
    below &&
    `its MCP server ${below.name} runs at the level ${isolationOf(below)}, and the owner's manifest demands ${floor}`
  );
}
