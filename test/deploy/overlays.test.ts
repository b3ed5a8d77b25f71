import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "pg";
import { describe, expect, test } from "vitest";
import { readConfig } from "../../lib/config/config.ts";
import { oidcAuthenticator } from "../../lib/run/oidc-keys.ts";
import { parsePostgresUrl } from "../../lib/store/postgres-url.ts";
import { repositoryRoot } from "../../scripts/repository-root.ts";
import { agentServiceEnvironment } from "../../services/agent/config.ts";
import { durableOf } from "../../services/agent/durable-config.ts";
import { environmentOf, ourContainers } from "./containers.ts";
import { hasKubectl, type Manifest, podOf, render } from "./manifests.ts";

describe.runIf(hasKubectl())("deploy/kubernetes", () => {
  const registryOf = (manifests: readonly Manifest[]) => {
    const registry = ourContainers(manifests).find(({ name }) => name === "registry");
    if (registry === undefined) throw new Error("there is no registry");
    return environmentOf(registry, manifests);
  };
  const tlsVolumes = (manifests: readonly Manifest[]) =>
    manifests.flatMap((manifest) => {
      const volumes = (podOf(manifest)?.volumes ?? []) as { name: string; secret?: unknown; configMap?: unknown }[];
      return volumes.filter(({ name }) => name === "tls");
    });

  test("knows where devices reach the registry, by a name that its certificate has", () => {
    const external = render("overlays/external");
    const certificate = external.find(
      ({ kind, metadata }) => kind === "Certificate" && metadata.name === "reeve-registry",
    );
    const dnsNames = (certificate?.spec as { dnsNames: string[] } | undefined)?.dnsNames;
    for (const build of [render("overlays/single-cluster"), external])
      expect(dnsNames).toContain(new URL(registryOf(build).REEVE_REGISTRY_PUBLIC_URL ?? "").hostname);
  });

  test("needs no certificate of a service in a mesh", () => {
    const mesh = render("overlays/mesh");
    expect(tlsVolumes(mesh)).toEqual(tlsVolumes(mesh).map(() => ({ name: "tls", configMap: { name: "reeve-ca" } })));
    expect(tlsVolumes(mesh)).toHaveLength(3);
    expect(registryOf(mesh)).not.toHaveProperty("REEVE_TLS_CERT_FILE");
    expect(registryOf(mesh)).not.toHaveProperty("REEVE_REGISTRY_PUBLIC_URL");
  });

  test("lets every service ask a provider of OpenID Connect where one is used, and only the agent service, for models, elsewhere", () => {
    const reaches = (manifests: readonly Manifest[]) =>
      manifests
        .filter(({ kind }) => kind === "NetworkPolicy")
        .filter(({ spec }) => JSON.stringify((spec as { egress?: unknown }).egress ?? []).includes('"port":443'));
    const namesOf = (manifests: readonly Manifest[]) => reaches(manifests).map(({ metadata }) => metadata.name);
    const withOidc = render("components/oidc");
    expect(namesOf(withOidc).sort()).toEqual(["reeve-agent", "reeve-oidc"]);
    const policy = reaches(withOidc).find(({ metadata }) => metadata.name === "reeve-oidc");
    expect(policy?.spec).toMatchObject({
      podSelector: {
        matchExpressions: [{ operator: "In", values: ["reeve-registry", "reeve-policy", "reeve-agent"] }],
      },
    });
    expect(namesOf(render("base"))).toEqual(["reeve-agent"]);
    const settings = registryOf(withOidc);
    expect(() =>
      oidcAuthenticator({
        oidcIssuer: settings.REEVE_OIDC_ISSUER,
        oidcAudience: settings.REEVE_OIDC_AUDIENCE,
        oidcRoles: settings.REEVE_OIDC_ROLES ?? "",
      }),
    ).not.toThrow();
    expect(settings.REEVE_OIDC_ISSUER).toMatch(/^https:/);
  });

  test("gives the agent service no secret of the gate, and no way to policy, NATS or a private network", () => {
    const external = render("overlays/external");
    const pod = external
      .map((one) => [one, podOf(one)] as const)
      .find(([one]) => one.metadata.name === "reeve-agent" && one.kind === "Deployment");
    const volumes = (pod?.[1]?.volumes ?? []) as { secret?: { secretName: string } }[];
    expect(volumes.flatMap(({ secret }) => secret?.secretName ?? []).sort()).toEqual([
      "reeve-agent-sealing",
      "reeve-agent-tls",
      "reeve-agent-tokens",
      "reeve-model-keys",
      "reeve-tokens",
    ]);
    const base = render("base");
    const rules = base.filter(({ kind, metadata }) => kind === "NetworkPolicy" && metadata.name === "reeve-agent");
    const egress = JSON.stringify(rules.map(({ spec }) => (spec as { egress: unknown }).egress));
    for (const name of ["reeve-policy", '"nats"', "4222", "7401"]) expect(egress).not.toContain(name);
    for (const cidr of ["10.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.168.0.0/16"])
      expect(egress).toContain(cidr);
  });

  test("opens the worker of durable runs to Restate alone, where it is used", () => {
    const agentOf = (manifests: readonly Manifest[]) => {
      const agent = ourContainers(manifests).find(({ name }) => name === "agent");
      if (agent === undefined) throw new Error("there is no agent service");
      return { ...agent, environment: environmentOf(agent, manifests) };
    };
    expect(agentOf(render("base")).environment).not.toHaveProperty("REEVE_RESTATE_INGRESS_URL");
    const manifests = render("components/restate");
    const { environment, ports } = agentOf(manifests);
    expect(durableOf(readConfig(agentServiceEnvironment, environment)).durable).toMatchObject({ workerPort: 7405 });
    expect(ports).toContainEqual({ name: "worker", containerPort: 7405 });
    const opening = manifests.filter(
      ({ kind, spec }) =>
        kind === "NetworkPolicy" && JSON.stringify((spec as { ingress?: unknown }).ingress ?? []).includes("7405"),
    );
    expect(opening.map(({ metadata }) => metadata.name)).toEqual(["reeve-restate"]);
    const from = [{ podSelector: { matchLabels: { "reeve.dev/backing": "restate" } } }];
    expect(opening[0]?.spec).toMatchObject({ ingress: [{ from }] });
  });
});

test("deploy/README.md shows database URLs that are read, with their authority", () => {
  const folder = mkdtempSync(join(tmpdir(), "reeve-url-"));
  writeFileSync(join(folder, "ca.crt"), "the authority");
  const readme = readFileSync(join(repositoryRoot, "deploy", "README.md"), "utf8");
  const urls = [...readme.matchAll(/postgres:\/\/\S+/g)].map(([url]) => url);
  expect(urls.length).toBeGreaterThan(1);
  for (const url of urls) {
    const address = parsePostgresUrl(url.replace("/var/run/reeve/tls", folder));
    const { host, ssl } = new Client({ connectionString: address.connectionString }) as Client & { ssl: unknown };
    expect({ host, ssl }).toEqual({ host: "reeve-postgres", ssl: { ca: "the authority" } });
    expect(address.schema).toMatch(/^(?:registry|policy|agent)$/);
  }
  rmSync(folder, { recursive: true });
});
