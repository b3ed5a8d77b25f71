import type { SignedEnvelope } from "../../../gen/ts/reeve/common/v1/signed_pb.ts";
import { Mode, SandboxLevel } from "../../../gen/ts/reeve/device/v1/device_pb.ts";
import type { JoinToken } from "../../../lib/identity/join-token.ts";
import type { SigningKey } from "../../../lib/sign/keys.ts";
import { AGENT_VERSION } from "../agent-version.ts";
import { buildManifest, sealManifest } from "../manifest/manifest.ts";

/**
 * The manifest that a device joins with: who it is, with the name and labels of the token. What it can do it says when it
 * attaches.
 */
export function joiningManifest(key: SigningKey, { name, labels }: Pick<JoinToken, "name" | "labels">): SignedEnvelope {
  const manifest = buildManifest({
    key,
    name,
    labels,
    mode: Mode.USER,
    capabilities: [],
    readRoots: [],
    writeRoots: [],
    sandbox: SandboxLevel.NONE,
    platform: `${process.platform}/${process.arch}`,
    agentVersion: AGENT_VERSION,
    unavailable: [],
    announced: [],
    issueMs: Date.now(),
  });
  return sealManifest(key, manifest).envelope;
}
