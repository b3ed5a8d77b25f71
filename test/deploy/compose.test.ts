import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { readConfig } from "../../lib/config/config.ts";
import { ENVIRONMENTS } from "../../scripts/configuration/document.ts";
import { type ComposeService, compose, DEPLOY, mountsOf } from "./compose.ts";

const ours = Object.entries(compose.services).filter(([name]) =>
  ["policy", "registry", "agent", "device"].includes(name),
);

/** The volumes of a service; files of the repository do not count. */
const volumesOf = (service: ComposeService | undefined): string[] =>
  mountsOf(service ?? {}).flatMap(({ source }) => (source.startsWith(".") ? [] : [source]));

describe("deploy/compose.yaml", () => {
  test("has its services, PostgreSQL, NATS and one device, and what sets them up", () => {
    const names = ["agent", "device", "join", "nats", "policy", "postgres", "registry", "setup"];
    expect(Object.keys(compose.services).sort()).toEqual(names);
  });

  test.each(ours)("%s is set as the code reads it", (name, service) => {
    const spec = ENVIRONMENTS[`reeve serve ${name}`];
    if (spec === undefined) throw new Error(`no settings for ${name}`);
    const known = Object.values(spec).map((key) => key.name);
    const environment = service.environment ?? {};
    expect(Object.keys(environment).filter((key) => !known.includes(key))).toEqual([]);
    const substituted = Object.fromEntries(
      Object.entries(environment).map(([key, value]) => [key, value.replace(/\$\{[^}]*\}/g, "secret")]),
    );
    expect(() => readConfig(spec, substituted)).not.toThrow();
    expect(service.read_only).toBe(true);
  });

  test("builds targets that the Dockerfile has, and waits for services that exist", () => {
    const dockerfile = readFileSync(join(DEPLOY, "Dockerfile"), "utf8");
    for (const { build, depends_on = {} } of Object.values(compose.services)) {
      if (build !== undefined) expect(dockerfile).toContain(` AS ${build.target}\n`);
      for (const name of Object.keys(depends_on)) expect(compose.services).toHaveProperty(name);
    }
  });

  test("mounts files and volumes that exist", () => {
    for (const service of Object.values(compose.services)) {
      for (const { source } of mountsOf(service)) {
        if (source.startsWith(".")) expect(existsSync(join(DEPLOY, source)), source).toBe(true);
        else expect(compose.volumes).toHaveProperty(source);
      }
    }
  });

  test("has `setup` change the owner of every volume, since none of those who use them is root", () => {
    const { setup, postgres: _, ...users } = compose.services;
    const given = mountsOf(setup ?? {}).filter(({ target }) =>
      /^\/(?:owner|certs|tokens|agent|volumes\/.+)$/.test(target),
    );
    expect(new Set(Object.values(users).flatMap(volumesOf))).toEqual(new Set(given.map(({ source }) => source)));
  });

  test("keeps the authority's key and the operator's token from every service", () => {
    const holders = Object.entries(compose.services).filter(([, service]) => volumesOf(service).includes("owner"));
    expect(holders.map(([name]) => name).sort()).toEqual(["join", "setup"]);
  });

  test("gives the agent service secrets of its own, and no other service those", () => {
    expect(volumesOf(compose.services.agent).sort()).toEqual(["agent", "runs", "tokens"]);
    const holders = Object.entries(compose.services).filter(([, service]) => volumesOf(service).includes("agent"));
    expect(holders.map(([name]) => name).sort()).toEqual(["agent", "setup"]);
    expect(compose.services.agent?.environment?.REEVE_AGENT_DATABASE_URL).toMatch(/^postgres:\/\/reeve_agent:/);
  });

  test("opens policy and the agent service to this machine only", () => {
    expect(compose.services.agent?.ports).toEqual(["127.0.0.1:7403:7403"]);
    expect(compose.services.policy?.ports).toEqual(["127.0.0.1:7401:7401"]);
  });
});
