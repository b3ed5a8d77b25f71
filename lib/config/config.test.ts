import { join } from "node:path";
import { expect, expectTypeOf, test } from "vitest";
import { ConfigError, type ConfigSpec, describeConfig, readConfig } from "./config.ts";

const spec = {
  port: { name: "REEVE_PORT", type: "int", min: 0, max: 65_535, default: 7400, doc: "The port to listen on." },
  mode: { name: "REEVE_MODE", type: "enum", values: ["user", "sudo"], default: "user", doc: "What tools may do." },
  hold: { name: "REEVE_HOLD", type: "duration", min: 1_000, default: 300_000, doc: "How long a call may be held." },
  tls: { name: "REEVE_TLS", type: "bool", default: false, doc: "Whether to use TLS." },
  nats: { name: "REEVE_NATS", type: "url", optional: true, doc: "The NATS server." },
  state: { name: "REEVE_STATE", type: "path", default: "state", doc: "Where state is kept." },
  token: { name: "REEVE_TOKEN", type: "string", secret: true, doc: "The join token." },
} as const satisfies ConfigSpec;

function problemsOf(env: Record<string, string>): readonly string[] {
  try {
    readConfig(spec, env);
    return [];
  } catch (e: unknown) {
    if (e instanceof ConfigError) return e.problems;
    throw e;
  }
}

test("takes defaults for what is unset or empty", () => {
  const config = readConfig(spec, { REEVE_TOKEN: "t", REEVE_PORT: "" });
  expect(config).toEqual({
    port: 7400,
    mode: "user",
    hold: 300_000,
    tls: false,
    nats: undefined,
    state: join(process.cwd(), "state"),
    token: "t",
  });
});

test("gives each key the type its spec says", () => {
  const config = readConfig(spec, {
    REEVE_TOKEN: "t",
    REEVE_TLS: "true",
    REEVE_NATS: "nats://h:4222",
    REEVE_MODE: "sudo",
  });
  expectTypeOf(config.port).toEqualTypeOf<number>();
  expectTypeOf(config.mode).toEqualTypeOf<"user" | "sudo">();
  expectTypeOf(config.nats).toEqualTypeOf<URL | undefined>();
  expect(config).toMatchObject({ tls: true, mode: "sudo", nats: new URL("nats://h:4222") });
});

test.each([
  ["1000ms", 1_000],
  ["90s", 90_000],
  ["5m", 300_000],
  ["2h", 7_200_000],
  ["1d", 86_400_000],
])("reads the duration %s as %d ms", (text, milliseconds) => {
  expect(readConfig(spec, { REEVE_TOKEN: "t", REEVE_HOLD: text }).hold).toBe(milliseconds);
});

test("reports every problem at once, with the variable's name and no secret", () => {
  expect(
    problemsOf({ REEVE_PORT: "70000", REEVE_MODE: "root", REEVE_HOLD: "5", REEVE_TLS: "yes", REEVE_NATS: "nowhere" }),
  ).toEqual([
    'REEVE_PORT must be a whole number, at least 0 and at most 65535, not "70000"',
    'REEVE_MODE must be one of user, sudo, not "root"',
    'REEVE_HOLD must be a duration such as 500ms, 30s, 5m, 2h or 1d, at least 1s, not "5"',
    'REEVE_TLS must be true or false, not "yes"',
    'REEVE_NATS must be a URL, not "nowhere"',
    "REEVE_TOKEN is not set: The join token.",
  ]);
});

test("does not show the value of a secret that is wrong", () => {
  const pin = { pin: { name: "PIN", type: "int", secret: true, doc: "A pin." } } as const;
  expect(() => readConfig(pin, { PIN: "hunter2" })).toThrow(/PIN must be a whole number$/);
});

test.each(["12.5", "1e3", "0x10", " 7", "seven"])("takes %j for no whole number", (text) => {
  expect(problemsOf({ REEVE_TOKEN: "t", REEVE_PORT: text })).toHaveLength(1);
});

test("describes every key", () => {
  const lines = describeConfig(spec);
  expect(lines).toHaveLength(7);
  expect(lines[2]).toEqual({
    name: "REEVE_HOLD",
    at: undefined,
    expected: "a duration such as 500ms, 30s, 5m, 2h or 1d, at least 1s",
    default: "5m",
    required: false,
    secret: false,
    doc: "How long a call may be held.",
  });
  expect(lines[6]).toMatchObject({ name: "REEVE_TOKEN", default: undefined, required: true, secret: true });
});
