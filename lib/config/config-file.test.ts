import { expect, test } from "vitest";
import { readConfig } from "./config.ts";
import { parseConfigFile, withFileValues } from "./config-file.ts";
import type { ConfigKey } from "./config-key.ts";

const keys = {
  log: { name: "R_LOG", at: "log_level", type: "enum", values: ["info", "warn"], default: "info", doc: "How much." },
  token: { name: "R_TOKEN", at: "token", type: "string", optional: true, secret: true, doc: "A token." },
  port: { name: "R_PORT", at: "device.port", type: "int", min: 0, max: 65_535, default: 7402, doc: "Port." },
  kept: { name: "R_KEPT", at: "device.kept", type: "duration", min: 1000, default: 60_000, doc: "How long." },
  plain: { name: "R_PLAIN", at: "device.plain", type: "bool", default: false, doc: "Whether." },
  dir: { name: "R_DIR", at: "device.dir", type: "path", optional: true, doc: "Folder." },
  roots: {
    name: "R_ROOTS",
    at: "device.roots",
    type: "string",
    list: ":",
    entries: "path",
    default: "",
    doc: "Roots.",
  },
  labels: { name: "R_LABELS", at: "device.labels", type: "string", map: ",", default: "", doc: "Labels." },
  debug: { name: "R_DEBUG", type: "string", optional: true, doc: "Not in a file." },
} as const satisfies Record<string, ConfigKey>;

const place = { folder: "/etc/reeve", home: "/home/ann" };
const parse = (text: string) => parseConfigFile(text, place, Object.values(keys));

test("a file says the same as the variables would", () => {
  const { values, problems } = parse(`
log_level: warn
device:
  port: 0
  kept: 2h
  plain: true
  dir: state
  roots: [~/work, /srv, data]
  labels: { role: web, zone: home }
`);
  expect(problems).toEqual([]);
  expect(Object.fromEntries([...values].map(([name, { text }]) => [name, text]))).toEqual({
    R_LOG: "warn",
    R_PORT: "0",
    R_KEPT: "2h",
    R_PLAIN: "true",
    R_DIR: "/etc/reeve/state",
    R_ROOTS: "/home/ann/work:/srv:/etc/reeve/data",
    R_LABELS: "role=web,zone=home",
  });
  expect(values.get("R_KEPT")?.line).toBe(5);
  expect(readConfig(keys, withFileValues({}, values))).toMatchObject({ port: 0, kept: 7_200_000, plain: true });
});

test("the environment goes over the file, and an empty variable does not", () => {
  const { values } = parse("log_level: warn\ndevice: { port: 1 }");
  expect(withFileValues({ R_LOG: "info", R_PORT: "", OTHER: "x" }, values)).toEqual({
    R_LOG: "info",
    R_PORT: "1",
    OTHER: "x",
  });
});

test.each([
  ["an unknown field", "device:\n  porrt: 1", 2, 'device: unknown key "porrt"; did you mean "port"?'],
  ["an unknown section", "devise: {}", 1, 'the file: unknown key "devise"; did you mean "device"?'],
  ["a field that nothing resembles", "device: { xyzzyx: 1 }", 1, "known are port, kept, plain, dir, roots, labels"],
  ["a setting of the environment only", "debug: x", 1, 'unknown key "debug"'],
  ["another kind of number", "device: { port: 1.5 }", 1, "device.port must be a whole number"],
  ["a text for a number", 'device: { port: "1" }', 1, "device.port must be a whole number"],
  ["a number out of bounds", "\ndevice: { port: 70000 }", 2, "at most 65535"],
  ["a number for a text", "log_level: 3", 1, "log_level must be one of info, warn"],
  ["a duration that is too short", "device: { kept: 1ms }", 1, "device.kept must be a duration"],
  ["a text for a list", "device: { roots: /srv }", 1, "device.roots must be a list"],
  ["an entry that would be two", "device: { roots: ['/a:/b'] }", 1, 'a text without ":"'],
  ["an empty entry", "device: { roots: ['']}", 1, "an entry of device.roots"],
  ["a label that would be two", "device: { labels: { a: 'b,c' } }", 1, "an entry of device.labels"],
  ["a label that is no text", "device: { labels: { a: 1 } }", 1, "must be a text"],
  ["a field that is written twice", "log_level: warn\nlog_level: info", 2, "unique"],
  ["an alias", "device: { labels: &a { b: c } }", 1, "anchors are not supported"],
  ["no mapping", "- a", 1, "the file must be a mapping"],
])("%s is a problem with its line", (_, text, line, message) => {
  const { problems } = parse(text);
  expect(problems[0]).toEqual({ line, message: expect.stringContaining(message) });
});

test("a secret is refused, and its value is in no message", () => {
  const { problems, values } = parse("token: rv_hunter2");
  expect(problems).toEqual([{ line: 1, message: expect.stringContaining("set R_TOKEN in the environment") }]);
  expect(JSON.stringify(problems)).not.toContain("hunter2");
  expect(values.size).toBe(0);
});

test("a list without an entry is not the same as no list", () => {
  expect(parse("device: { roots: [] }").values.get("R_ROOTS")?.text).toBe(":");
  expect(parse("device: { roots: }").values.has("R_ROOTS")).toBe(false);
  expect(parse("").problems).toEqual([]);
});
