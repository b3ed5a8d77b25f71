import { describe, expect, it } from "vitest";
import { readConfig } from "../../lib/config/config.ts";
import { faultDetail } from "../../lib/fault/fault.ts";
import { agentServiceEnvironment } from "./config.ts";
import { durableOf } from "./durable-config.ts";
import { runAgentService } from "./main.ts";

const ENV = {
  REEVE_TOKENS_FILE: "/nowhere/tokens.json",
  REEVE_AGENT_STATE_DIR: "/nowhere/agent",
  REEVE_AGENT_TOKEN: "token",
  REEVE_RESTATE_INGRESS_URL: "http://127.0.0.1:8080",
  REEVE_RESTATE_ADMIN_URL: "http://127.0.0.1:9070",
  REEVE_RESTATE_IDENTITY_KEYS: "publickeyv1_a, publickeyv1_b",
};

function durableFrom(env: Record<string, string>) {
  return durableOf(readConfig(agentServiceEnvironment, env)).durable;
}

function refusalOf(env: Record<string, string>): unknown {
  try {
    durableFrom(env);
  } catch (error: unknown) {
    return error;
  }
  throw new Error("nothing was refused");
}

describe("where durable runs are carried on", () => {
  it("is nowhere unless a Restate server is named, and needs all of it", () => {
    const { REEVE_RESTATE_INGRESS_URL, REEVE_RESTATE_ADMIN_URL, REEVE_RESTATE_IDENTITY_KEYS, ...none } = ENV;
    expect(durableFrom(none)).toBeUndefined();
    for (const part of [
      { REEVE_RESTATE_INGRESS_URL, REEVE_RESTATE_ADMIN_URL },
      { REEVE_RESTATE_INGRESS_URL, REEVE_RESTATE_IDENTITY_KEYS },
      { REEVE_RESTATE_ADMIN_URL, REEVE_RESTATE_IDENTITY_KEYS },
      { REEVE_RESTATE_INGRESS_URL, REEVE_RESTATE_ADMIN_URL, REEVE_RESTATE_IDENTITY_KEYS: " , " },
    ]) {
      const error = refusalOf({ ...none, ...part });
      expect(faultDetail(error)?.metadata).toMatchObject({ field: "agent.restate_ingress_url" });
    }
    expect(durableFrom(ENV)?.identityKeys).toEqual(["publickeyv1_a", "publickeyv1_b"]);
  });

  it.each(["0.0.0.0", "::", "10.1.2.3", "worker.example"])(
    "has no worker in cleartext on %s, unless that is allowed",
    (host) => {
      const beyond = { ...ENV, REEVE_AGENT_WORKER_HOST: host };
      const error = refusalOf(beyond);
      expect(faultDetail(error)?.metadata).toMatchObject({ field: "agent.worker_host", rule: "loopback" });
      expect(String(error)).toContain(`refusing to let the worker of durable runs listen on ${host} in cleartext`);
      expect(String(error)).toContain("REEVE_ALLOW_PLAINTEXT=true");
      expect(durableFrom({ ...beyond, REEVE_ALLOW_PLAINTEXT: "true" })?.workerHost).toBe(host);
    },
  );

  it.each(["127.0.0.1", "::1", "localhost"])("has a worker on %s", (host) => {
    expect(durableFrom({ ...ENV, REEVE_AGENT_WORKER_HOST: host })?.workerHost).toBe(host);
  });

  it("is checked before the service starts", async () => {
    const starting = runAgentService({ ...ENV, REEVE_AGENT_WORKER_HOST: "0.0.0.0" });
    await expect(starting).rejects.toThrow("refusing to let the worker of durable runs listen on 0.0.0.0");
  });
});
