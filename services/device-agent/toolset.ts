import type { SigningKey } from "../../lib/sign/keys.ts";
import type { OfferedTools, OwnerDemands } from "./execute/prepare.ts";
import { buildManifest, keepManifest, type ManifestFacts, type SealedManifest } from "./manifest/manifest.ts";
import { type OfferChoice, offerTools } from "./manifest/offer.ts";
import { collectTools } from "./providers/collect.ts";
import type { ToolProvider } from "./providers/provider.ts";

/** What the device offers, with the manifest that says so. */
export interface Toolset extends OfferedTools {
  manifest: SealedManifest;
  /** Capabilities in the configuration that no tool has. */
  unknownCapabilities: readonly string[];
}

/** The device's tools and its manifest, which change together. */
export interface Toolsets extends Disposable {
  current(): Toolset;
  /** Calls back when a new manifest is active. Returns a function that stops it. */
  onChange(listener: () => void): () => void;
}

/** What the manifest says besides the tools. */
export type DeviceFacts = Omit<
  ManifestFacts,
  "key" | "agentVersion" | "issueMs" | "capabilities" | "unavailable" | "announced"
>;

export interface ToolsetOptions {
  providers: readonly ToolProvider[];
  choice: OfferChoice;
  /** What the owner's manifest demands of every call. Default nothing. */
  owner?: OwnerDemands | undefined;
  facts: DeviceFacts;
  key: SigningKey;
  /** Where the signed manifest is kept. */
  manifestFile: string;
  agentVersion: string;
  now(): number;
  onError(error: unknown): void;
}

/** Signs the manifest of what the providers have, and a new one whenever that changes. */
export async function openToolsets(options: ToolsetOptions): Promise<Toolsets> {
  let current = await makeToolset(options);
  const listeners = new Set<() => void>();
  let changes = Promise.resolve();
  const update = async (): Promise<void> => {
    const next = await makeToolset(options);
    if (next.manifestDigest === current.manifestDigest) return;
    current = next;
    for (const listener of listeners) listener();
  };
  // One after the other: the last one that is written is the last one that is active.
  const onProviderChange = (): void => {
    changes = changes.then(update).catch(options.onError);
  };
  const stops = options.providers.map((provider) => provider.onChange(onProviderChange));
  return {
    current: () => current,
    onChange(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    [Symbol.dispose]() {
      for (const stop of stops) stop();
    },
  };
}

async function makeToolset({ providers, choice, facts, ...options }: ToolsetOptions): Promise<Toolset> {
  const collected = collectTools(providers.map((provider) => provider.provided()));
  const offer = offerTools(collected.tools, collected.known, choice);
  const { unavailable, announced } = collected;
  const said = buildManifest({
    ...facts,
    key: options.key,
    agentVersion: options.agentVersion,
    issueMs: options.now(),
    capabilities: offer.capabilities,
    unavailable,
    announced,
  });
  const manifest = await keepManifest(options.manifestFile, options.key, said);
  return {
    tools: offer.tools,
    known: new Map(collected.known.map((spec) => [spec.name, spec])),
    unavailable: new Map(unavailable.map((one) => [one.tool, one])),
    manifest,
    owner: options.owner,
    manifestDigest: manifest.digest,
    unknownCapabilities: offer.unknown,
  };
}
