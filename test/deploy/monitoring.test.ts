import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { collectDefaultMetrics, Registry } from "prom-client";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { repositoryRoot } from "../../scripts/repository-root.ts";

interface Rule {
  alert: string;
  expr: string;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
}

const alerts = parse(readFileSync(join(repositoryRoot, "deploy/prometheus/alerts.yaml"), "utf8")) as {
  groups: { rules: Rule[] }[];
};
const dashboard = JSON.parse(readFileSync(join(repositoryRoot, "deploy/grafana/reeve.json"), "utf8")) as {
  panels: { id: number; title: string; targets: { expr: string }[] }[];
};

/** Names that the code gives to metrics, and those of the process that prom-client adds. */
async function knownMetrics(): Promise<Set<string>> {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const own = execFileSync("git", ["grep", "--untracked", "-hoE", '"reeve_[a-z_]+"', "--", "lib", "services"], {
    cwd: repositoryRoot,
    encoding: "utf8",
  });
  const names = [...own.matchAll(/"(reeve_[a-z_]+)"/g)].map(([, name = ""]) => name);
  const defaults = (await registry.getMetricsAsJSON()).map(({ name }) => name);
  return new Set([...names, ...defaults, "up"]);
}

function metricsIn(expr: string): string[] {
  return [...expr.matchAll(/\b(?:reeve|nodejs|process)_[a-z0-9_]+/g)].map(([name]) =>
    name.replace(/_(?:bucket|sum|count)$/, ""),
  );
}

const RULES = alerts.groups.flatMap(({ rules }) => rules);

describe("alerts and dashboard", () => {
  test.each([
    ...RULES.map(({ alert, expr }) => [alert, expr] as const),
    ...dashboard.panels.flatMap(({ title, targets }) => targets.map(({ expr }) => [title, expr] as const)),
  ])("%s asks for metrics that the services export", async (_, expr) => {
    const known = await knownMetrics();
    expect(metricsIn(expr).filter((name) => !known.has(name))).toEqual([]);
  });

  test("every alert says how bad it is and what it means", () => {
    for (const { alert, labels, annotations } of RULES) {
      expect(labels?.severity, alert).toMatch(/^(?:warning|critical)$/);
      expect(annotations?.summary, alert).toBeTruthy();
      expect(annotations?.description, alert).toBeTruthy();
    }
    expect(new Set(RULES.map(({ alert }) => alert)).size).toBe(RULES.length);
  });

  test("every panel has a number of its own", () => {
    expect(new Set(dashboard.panels.map(({ id }) => id)).size).toBe(dashboard.panels.length);
  });
});
