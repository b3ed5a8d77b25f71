import { describe, expect, it } from "vitest";
import { UsageError } from "./errors/usage-error.ts";
import type { Profile } from "./profile.ts";
import { needsLogin, resolveTarget } from "./target.ts";

const at = { registry: "http://127.0.0.1:1", policy: "http://127.0.0.1:2", token: "own", stateDir: "/s" };
const profile: Profile = { ...at, registrySocket: "/s/r.sock", policySocket: "/s/p.sock" };
const sockets = { registry: "/s/r.sock", policy: "/s/p.sock" };

function refusalOf(run: () => unknown): UsageError {
  try {
    run();
  } catch (error: unknown) {
    if (error instanceof UsageError) return error;
  }
  throw new Error("it was not refused");
}

describe("where a command goes", () => {
  it("is the profile's control plane where nothing else is said", () => {
    expect(resolveTarget({}, {}, profile)).toEqual({ ...at, sockets, origin: "profile", warnings: [] });
  });

  it("is what the environment says, and a flag before that", () => {
    const env = { REEVE_REGISTRY_URL: "http://[::1]:3", REEVE_POLICY_URL: "https://p", REEVE_TOKEN: "env" };
    expect(resolveTarget({}, env, profile)).toMatchObject({
      registry: "http://[::1]:3",
      policy: "https://p",
      token: "env",
    });
    expect(resolveTarget({ registry: "https://r", token: "flag" }, env, profile)).toMatchObject({
      registry: "https://r",
      token: "flag",
    });
  });

  it("leaves policy open where only a registry is named", () => {
    const target = resolveTarget({}, { REEVE_REGISTRY_URL: "https://r", REEVE_TOKEN: "t" }, profile);
    expect(target).toMatchObject({ policy: undefined, stateDir: undefined });
  });

  it("uses another token for the profile's control plane", () => {
    expect(resolveTarget({}, { REEVE_TOKEN: "agent" }, profile)).toMatchObject({ ...at, token: "agent", sockets });
  });

  it.each([
    [{ registry: "http://evil" }, {}],
    [{ policy: "http://evil" }, {}],
    [{}, { REEVE_REGISTRY_URL: "http://127.0.0.1:9" }],
    [{}, { REEVE_POLICY_URL: "http://127.0.0.1:9" }],
  ])("never sends the profile's token to another address: %j %j", (flags, env) => {
    expect(() => resolveTarget(flags, env, profile)).toThrow("no token is known for this address");
  });

  it("never sends the profile's token to a port, where anybody may listen", () => {
    expect(resolveTarget({ registry: at.registry }, {}, profile)).toMatchObject({ token: "own", sockets });
    expect(refusalOf(() => resolveTarget({}, {}, at)).hints.join()).toContain("reeve up");
    const secure = { ...at, registry: "https://one.example", policy: "https://two.example" };
    expect(resolveTarget({}, {}, secure)).toMatchObject({ token: "own", sockets: undefined });
  });

  it("is the port that is named, for a token that is given with it", () => {
    const target = resolveTarget({ registry: at.registry }, { REEVE_TOKEN: "agent" }, profile);
    expect(target).toMatchObject({ registry: at.registry, token: "agent", sockets: undefined });
  });

  it("knows the profile's address however it is written", () => {
    expect(resolveTarget({ registry: "http://127.0.0.1:1/" }, {}, profile).token).toBe("own");
  });

  it("needs no login where both are said", () => {
    expect(needsLogin({ registry: "https://r" }, { REEVE_TOKEN: "t" })).toBe(false);
    for (const flags of [{}, { registry: "https://r" }, { token: "t" }]) expect(needsLogin(flags, {})).toBe(true);
  });

  it("must be known", () => {
    expect(() => resolveTarget({}, {}, undefined)).toThrow(
      "no control plane is known: start one with `reeve up`, or set REEVE_REGISTRY_URL and REEVE_TOKEN",
    );
    expect(() => resolveTarget({ registry: "https://r" }, {}, undefined)).toThrow("no token is known");
  });

  it.each(["127.0.0.1:7400", "ftp://x", "nonsense"])("must be an address: %s", (registry) => {
    expect(() => resolveTarget({ registry, token: "t" }, {}, undefined)).toThrow("is no address such as");
  });

  it.each(["http://localhost:1", "http://127.0.0.1:1", "http://[::1]:1", "https://far.example"])(
    "may have the token: %s",
    (registry) => {
      expect(resolveTarget({ registry }, { REEVE_TOKEN: "t" }, undefined).warnings).toEqual([]);
    },
  );

  it.each(["http://far.example:1", "http://127.0.0.1.far.example", "http://10.0.0.5:7400"])(
    "is refused where the token would go in the clear, unless that is allowed, which is said: %s",
    (far) => {
      const env = { REEVE_TOKEN: "t" };
      const near = "http://127.0.0.1:1";
      for (const flags of [{ registry: far }, { registry: near, policy: far }]) {
        const refusal = refusalOf(() => resolveTarget(flags, env, undefined));
        expect(refusal.message).toContain("in the clear");
        expect(refusal.hints.join()).toContain("REEVE_ALLOW_PLAINTEXT=true");
        expect(() => resolveTarget(flags, { ...env, REEVE_ALLOW_PLAINTEXT: "yes" }, undefined)).toThrow(UsageError);
        const allowed = resolveTarget(flags, { ...env, REEVE_ALLOW_PLAINTEXT: "true" }, undefined);
        expect(allowed.warnings).toEqual([expect.stringContaining("in the clear")]);
      }
    },
  );

  it("trusts the authorities of a flag, else of the environment, else of the profile at its own address", () => {
    const env = { REEVE_CA_FILE: "/env.pem", REEVE_TOKEN: "t" };
    const own = { ...profile, caFile: "/own.pem" };
    expect(resolveTarget({ caFile: "/flag.pem" }, env, own).caFile).toBe("/flag.pem");
    expect(resolveTarget({}, env, own).caFile).toBe("/env.pem");
    expect(resolveTarget({}, {}, own).caFile).toBe("/own.pem");
    expect(resolveTarget({ registry: "https://other" }, { REEVE_TOKEN: "t" }, own).caFile).toBeUndefined();
  });

  it("warns of a token on the command line", () => {
    expect(resolveTarget({ token: "t" }, {}, profile).warnings).toEqual([expect.stringContaining("list of processes")]);
  });
});
