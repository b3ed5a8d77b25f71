import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "pg";
import { describe, expect, test } from "vitest";
import { oidcAuthenticator } from "../../lib/run/oidc-keys.ts";
import { parsePostgresUrl } from "../../lib/store/postgres-url.ts";
import { repositoryRoot } from "../../scripts/repository-root.ts";
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
    expect(tlsVolumes(mesh)).toHaveLength(2);
    expect(registryOf(mesh)).not.toHaveProperty("REEVE_TLS_CERT_FILE");
    expect(registryOf(mesh)).not.toHaveProperty("REEVE_REGISTRY_PUBLIC_URL");
  });

  test("lets both services ask a provider of OpenID Connect where one is used, and only there", () => {
    const reaches = (manifests: readonly Manifest[]) =>
      manifests
        .filter(({ kind }) => kind === "NetworkPolicy")
        .filter(({ spec }) => JSON.stringify((spec as { egress?: unknown }).egress ?? []).includes('"port":443'));
    const [policy, ...others] = reaches(render("components/oidc"));
    expect(others).toEqual([]);
    expect(policy?.spec).toMatchObject({
      podSelector: { matchExpressions: [{ operator: "In", values: ["reeve-registry", "reeve-policy"] }] },
    });
    expect(reaches(render("base"))).toEqual([]);
    const settings = registryOf(render("components/oidc"));
    expect(() =>
      oidcAuthenticator({
        oidcIssuer: settings.REEVE_OIDC_ISSUER,
        oidcAudience: settings.REEVE_OIDC_AUDIENCE,
        oidcRoles: settings.REEVE_OIDC_ROLES ?? "",
      }),
    ).not.toThrow();
    expect(settings.REEVE_OIDC_ISSUER).toMatch(/^https:/);
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
    expect(address.schema).toMatch(/^(?:registry|policy)$/);
  }
  rmSync(folder, { recursive: true });
});
