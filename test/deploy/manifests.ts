import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { parse, parseAllDocuments } from "yaml";
import { repositoryRoot } from "../../scripts/repository-root.ts";

/** A Kubernetes object as it stands in a manifest. */
export interface Manifest {
  apiVersion: string;
  kind: string;
  metadata: { name: string; namespace?: string };
  [key: string]: unknown;
}

/** Where the manifests are. */
export const KUBERNETES = join(repositoryRoot, "deploy", "kubernetes");

/** The base, every overlay, and the base with each component, by a path below deploy/kubernetes. */
export const BUILDS = [
  "base",
  ...["overlays", "components"].flatMap((kind) => readdirSync(join(KUBERNETES, kind)).map((name) => join(kind, name))),
];

/** Whether kubectl can render overlays here. */
export function hasKubectl(): boolean {
  try {
    execFileSync("kubectl", ["version", "--client"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

/** What kubectl makes of a kustomization; of the base with it, for a component. Throws with its words where it cannot. */
export function render(build: string): Manifest[] {
  const folder = join(KUBERNETES, build);
  return build.startsWith("components") ? renderWith(folder) : kustomize(folder);
}

function renderWith(component: string): Manifest[] {
  const folder = mkdtempSync(join(tmpdir(), "reeve-kustomize-"));
  try {
    const [base, added] = [join(KUBERNETES, "base"), component].map((path) => relative(realpathSync(folder), path));
    const kustomization = { resources: [base], components: [added] };
    writeFileSync(join(folder, "kustomization.yaml"), JSON.stringify(kustomization));
    return kustomize(folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function kustomize(folder: string): Manifest[] {
  return documentsOf(execFileSync("kubectl", ["kustomize", folder], { encoding: "utf8", stdio: "pipe" }));
}

/** Every object that stands in a file of a kustomization, unrendered: what can be looked at without kubectl. */
export function written(build: string): Manifest[] {
  const folder = join(KUBERNETES, build);
  const files = readdirSync(folder).filter((name) => name.endsWith(".yaml") && name !== "kustomization.yaml");
  return files.flatMap((name) => documentsOf(readFileSync(join(folder, name), "utf8")));
}

/** A kustomization names files that exist. */
export function missingResources(build: string): string[] {
  const folder = join(KUBERNETES, build);
  const { resources = [] } = parse(readFileSync(join(folder, "kustomization.yaml"), "utf8")) as {
    resources?: string[];
  };
  return resources.filter((name) => !existsSync(join(folder, name)));
}

function documentsOf(text: string): Manifest[] {
  return parseAllDocuments(text).flatMap((document) => {
    if (document.errors.length > 0) throw document.errors[0];
    const value: unknown = document.toJS();
    return value === null ? [] : [value as Manifest];
  });
}

/** The parts of a container that the tests look at. */
export interface Container {
  name: string;
  image: string;
  args?: string[];
  env?: { name: string; value?: string; valueFrom?: unknown }[];
  envFrom?: { configMapRef: { name: string } }[];
  ports?: { name: string; containerPort: number }[];
  lifecycle?: { preStop?: { sleep?: { seconds: number } } };
  securityContext?: Record<string, unknown>;
  volumeMounts?: { name: string; mountPath: string }[];
  [probe: string]: unknown;
}

/** The pods that a manifest makes; undefined for one that makes none. */
export function podOf(manifest: Manifest): { containers: Container[]; [key: string]: unknown } | undefined {
  const spec = manifest.spec as { template?: { spec?: { containers: Container[] } } } | undefined;
  return spec?.template?.spec;
}
