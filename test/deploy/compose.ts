import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { repositoryRoot } from "../../scripts/repository-root.ts";

/** A service of deploy/compose.yaml, as far as the tests look at it. */
export interface ComposeService {
  build?: { dockerfile: string; target: string };
  command?: string[];
  environment?: Record<string, string>;
  /** Each "source:target", or "source:target:ro". */
  volumes?: string[];
  depends_on?: Record<string, unknown>;
  read_only?: boolean;
  ports?: string[];
  user?: string;
}

/** Where it and its files are. */
export const DEPLOY = join(repositoryRoot, "deploy");

/** deploy/compose.yaml. */
export const compose = parse(readFileSync(join(DEPLOY, "compose.yaml"), "utf8"), { merge: true }) as {
  services: Record<string, ComposeService>;
  volumes: Record<string, unknown>;
};

/** The mounts of a service: from a volume's name or a file's path to the place in the container. */
export function mountsOf({ volumes = [] }: ComposeService): { source: string; target: string }[] {
  return volumes.map((volume) => {
    const [source = "", target = ""] = volume.split(":");
    return { source, target };
  });
}
