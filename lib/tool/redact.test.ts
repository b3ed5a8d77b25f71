import { describe, expect, it } from "vitest";
import { toolByName } from "../toolschema/catalog-file.ts";
import { mayHoldSecrets, redactSecretFields } from "./redact.ts";

const EXEC = toolByName("exec")?.inputSchema ?? {};

const SCHEMA = {
  properties: {
    token: { type: "string", writeOnly: true },
    variables: { type: "object", additionalProperties: { type: "string" }, writeOnly: true },
    headers: { additionalProperties: { $ref: "#/$defs/header" } },
    list: { items: { properties: { key: { writeOnly: true } } } },
  },
  $defs: { header: { properties: { value: { writeOnly: true }, name: {} } } },
};

const bytes = (value: unknown) => Buffer.from(JSON.stringify(value));

describe("redactSecretFields", () => {
  it("hides every field that the schema marks as secret, and of a map the values", () => {
    const args = {
      token: "t",
      variables: { KEY: "v", OTHER: "w" },
      headers: { a: { name: "n", value: "v" } },
      list: [{ key: "k", other: 1 }],
      free: "f",
    };
    expect(redactSecretFields(args, SCHEMA)).toEqual({
      token: "[redacted]",
      variables: { KEY: "[redacted]", OTHER: "[redacted]" },
      headers: { a: { name: "n", value: "[redacted]" } },
      list: [{ key: "[redacted]", other: 1 }],
      free: "f",
    });
  });

  it("hides what a reference that leads nowhere describes", () => {
    expect(redactSecretFields({ a: 1 }, { properties: { a: { $ref: "#/$defs/none" } } })).toEqual({ a: "[redacted]" });
  });

  it("hides the input and the variables' values of exec, and nothing else of it", () => {
    const args = { argv: ["psql"], stdin: "select 1", env: { PGPASSWORD: "x" }, cwd: "/tmp" };
    const shown = { argv: ["psql"], stdin: "[redacted]", env: { PGPASSWORD: "[redacted]" }, cwd: "/tmp" };
    expect(redactSecretFields(args, EXEC)).toEqual(shown);
  });
});

describe("mayHoldSecrets", () => {
  it("knows from the bytes alone that there is none", () => {
    expect(mayHoldSecrets(bytes({ argv: ["uname", "-a"] }), EXEC)).toBe(false);
    expect(mayHoldSecrets(bytes({ argv: ["echo", "stdin"] }), EXEC)).toBe(false);
    expect(mayHoldSecrets(bytes({ free: "f" }), SCHEMA)).toBe(false);
    expect(mayHoldSecrets(bytes({ path: "/" }), {})).toBe(false);
  });

  it.each([
    { argv: ["cat"], stdin: "x" },
    { argv: ["env"], env: { A: "b" } },
  ])("sees %j", (args) => {
    expect(mayHoldSecrets(bytes(args), EXEC)).toBe(true);
  });

  it("sees what is nested, and takes no chance with a secret that has no name", () => {
    expect(mayHoldSecrets(bytes({ list: [{ key: "k" }] }), SCHEMA)).toBe(true);
    expect(mayHoldSecrets(bytes({}), { items: { writeOnly: true } })).toBe(true);
    expect(mayHoldSecrets(bytes({}), { properties: { a: { $ref: "other.json" } } })).toBe(true);
  });
});
