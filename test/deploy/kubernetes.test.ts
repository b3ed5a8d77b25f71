import { dirname } from "node:path";
import { describe, expect, test } from "vitest";
import type { ConfigSpec } from "../../lib/config/config.ts";
import { readConfig } from "../../lib/config/config.ts";
import { ENVIRONMENTS } from "../../scripts/configuration/document.ts";
import { allContainers, containersOf, environmentOf, ourContainers } from "./containers.ts";
import {
  BUILDS,
  type Container,
  hasKubectl,
  type Manifest,
  missingResources,
  podOf,
  render,
  written,
} from "./manifests.ts";

/** Kinds of others, for which there are no types here. */
const FOREIGN = ["cert-manager.io/v1"];

describe.each(BUILDS)("deploy/kubernetes/%s", (build) => {
  const rendered = hasKubectl();
  const manifests = rendered ? render(build) : written(build);

  test("names files that exist, and renders where kubectl is present", () => {
    expect(missingResources(build)).toEqual([]);
    if (rendered) expect(manifests.length).toBeGreaterThan(0);
  });

  test("holds nothing but what Kubernetes knows", async () => {
    const problems: string[] = [];
    for (const manifest of manifests.filter(({ apiVersion }) => !FOREIGN.includes(apiVersion)))
      problems.push(...(await problemsOf(manifest)));
    expect(problems).toEqual([]);
  });

  test("runs nothing as root, nor with more rights than it needs", () => {
    for (const manifest of manifests) {
      const pod = podOf(manifest);
      if (pod === undefined) continue;
      expect(pod.securityContext, manifest.metadata.name).toMatchObject({
        runAsNonRoot: true,
        seccompProfile: { type: "RuntimeDefault" },
      });
      expect(pod.automountServiceAccountToken).toBe(false);
      for (const container of allContainers(pod)) {
        expect(container.securityContext, container.name).toMatchObject({
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ["ALL"] },
        });
        expect(container.resources, container.name).toMatchObject({ requests: {}, limits: {} });
      }
    }
  });

  test("takes every secret by reference", () => {
    expect(manifests.filter(({ kind }) => kind === "Secret")).toEqual([]);
    for (const container of containersOf(manifests))
      for (const { name, value } of container.env ?? [])
        if (/(?:PASSWORD|TOKEN|SECRET|_KEY|DATABASE_URL)$/.test(name)) expect(value, name).toBeUndefined();
  });

  test("sets only what the code reads, to values that it takes", () => {
    for (const container of ourContainers(manifests)) {
      const spec = specOf(container);
      const environment = environmentOf(container, manifests);
      const known = new Set([...Object.values(spec).map(({ name }) => name), "NODE_NAME"]);
      if (container.name === "migrate") continue;
      expect(
        Object.keys(environment).filter((name) => !known.has(name)),
        container.name,
      ).toEqual([]);
      expect(() => readConfig(spec, environment), container.name).not.toThrow();
    }
  });

  test("asks for health where the code answers", () => {
    for (const container of ourContainers(manifests)) {
      const environment = environmentOf(container, manifests);
      // None of them asks /healthz: one dependency that is unavailable would take every pod out of service, or restart it.
      for (const [name, path] of [
        ["startupProbe", "/readyz"],
        ["readinessProbe", "/readyz"],
        ["livenessProbe", "/livez"],
      ] as const) {
        const probe = container[name] as Probe | undefined;
        if (probe !== undefined) expect(probe.httpGet, name).toEqual({ path, port: "probe" });
      }
      for (const { name, containerPort } of container.ports ?? []) {
        const special = { probe: environment.REEVE_PROBE_PORT, worker: environment.REEVE_AGENT_WORKER_PORT }[name];
        const expected = special ?? portOf(container, environment);
        expect(String(containerPort), `${container.name} ${name}`).toBe(expected);
      }
    }
  });

  test("sends services to ports that containers have", () => {
    for (const service of manifests.filter(({ kind }) => kind === "Service")) {
      const { ports, selector } = service.spec as { ports: { targetPort: string }[]; selector: Record<string, string> };
      const pods = manifests.filter((manifest) => selects(selector, manifest));
      const names = pods.flatMap((pod) => podOf(pod)?.containers ?? []).flatMap(({ ports: own }) => own ?? []);
      for (const { targetPort } of ports) {
        if (pods.length > 0)
          expect(
            names.map(({ name }) => name),
            service.metadata.name,
          ).toContain(targetPort);
      }
    }
  });

  test("mounts every volume it names, and names every volume it mounts", () => {
    for (const manifest of manifests) {
      const pod = podOf(manifest);
      if (pod === undefined) continue;
      const claims = (manifest.spec as { volumeClaimTemplates?: Manifest[] }).volumeClaimTemplates ?? [];
      const volumes = [
        ...((pod.volumes ?? []) as { name: string }[]).map(({ name }) => name),
        ...claims.map(({ metadata }) => metadata.name),
      ];
      const mounted = allContainers(pod).flatMap(({ volumeMounts }) => (volumeMounts ?? []).map(({ name }) => name));
      expect(new Set(mounted)).toEqual(new Set(volumes));
    }
  });

  test("keeps state below a volume's folder, which belongs to root, and not in it", () => {
    for (const container of ourContainers(manifests)) {
      const mounts = (container.volumeMounts ?? []).map(({ mountPath }) => mountPath);
      for (const [name, path] of Object.entries(environmentOf(container, manifests)))
        if (name.endsWith("_STATE_DIR")) expect(mounts, `${container.name} ${name}`).toContain(dirname(path));
    }
  });

  test("gives a container that migrates the same files as the service that follows", () => {
    for (const manifest of manifests) {
      const pod = podOf(manifest);
      const [service] = pod?.containers ?? [];
      for (const { volumeMounts } of (pod?.initContainers ?? []) as Container[]) {
        const tls = service?.volumeMounts?.find(({ name }) => name === "tls");
        expect(tls?.mountPath).toBe("/var/run/reeve/tls");
        expect(volumeMounts).toContainEqual(tls);
      }
    }
  });

  test("says how many pods there are in one place only", () => {
    for (const { spec } of manifests.filter(({ kind }) => kind === "HorizontalPodAutoscaler")) {
      const { name } = (spec as { scaleTargetRef: { name: string } }).scaleTargetRef;
      const target = manifests.find(({ kind, metadata }) => kind === "Deployment" && metadata.name === name);
      expect(target?.spec, name).not.toHaveProperty("replicas");
    }
  });

  test("stops a pod only when its address has been taken out, with time left for its calls", () => {
    for (const manifest of manifests.filter(({ kind }) => kind === "Deployment")) {
      const pod = podOf(manifest);
      for (const { name, lifecycle } of pod?.containers ?? []) {
        const seconds = lifecycle?.preStop?.sleep?.seconds ?? 0;
        expect(seconds, name).toBeGreaterThanOrEqual(5);
        expect(pod?.terminationGracePeriodSeconds, name).toBeGreaterThan(seconds + DRAIN_SECONDS);
      }
    }
  });
});

/** How long a service lets its calls run on and closes what it has, with some to spare. */
const DRAIN_SECONDS = 15;

interface Probe {
  httpGet?: { path: string; port: string };
}

/** What the published types of Kubernetes' own API have against a manifest. */
async function problemsOf(manifest: Manifest): Promise<string[]> {
  const [group, version] = manifest.apiVersion.includes("/")
    ? manifest.apiVersion.split("/")
    : ["", manifest.apiVersion];
  const module: unknown = await import(
    /* @vite-ignore */ `kubernetes-models/${group ? `${group}/` : ""}${version}/${manifest.kind}`
  );
  const Model = (module as Record<string, new (data: unknown) => { validate(): void }>)[manifest.kind];
  if (Model === undefined) return [`${manifest.apiVersion} ${manifest.kind} is not known`];
  try {
    new Model(manifest).validate();
    return [];
  } catch (error: unknown) {
    return [`${manifest.kind}/${manifest.metadata.name}: ${error instanceof Error ? error.message : String(error)}`];
  }
}

function specOf({ args = [] }: Container): ConfigSpec {
  const spec = ENVIRONMENTS[`reeve serve ${args.at(-1)}`];
  if (spec === undefined) throw new Error(`reeve ${args.join(" ")} is no service`);
  return spec;
}

function portOf({ args = [] }: Container, environment: Record<string, string>): string | undefined {
  return environment[`REEVE_${args.at(-1)?.toUpperCase()}_PORT`];
}

function selects(selector: Record<string, string>, manifest: Manifest): boolean {
  const { labels = {} } =
    (manifest.spec as { template?: { metadata?: { labels?: Record<string, string> } } })?.template?.metadata ?? {};
  return podOf(manifest) !== undefined && Object.entries(selector).every(([key, value]) => labels[key] === value);
}
