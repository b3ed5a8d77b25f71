import { describe, expect, it } from "vitest";
import { createNameMap, PROVIDER_NAME, providerName } from "./names.ts";

const TABLE: [tool: string, name: string][] = [
  ["exec", "exec"],
  ["fs.read", "fs_read"],
  ["docker.container.list", "docker_container_list"],
  ["http_get", "http_get"],
  ["screenshots:capture", "screenshots__capture"],
  ["my-plugin:do.it", "my-plugin__do_it"],
  ["weird tool/ñ😀", "weird_tool___"],
];

describe("tool names", () => {
  it.each(TABLE)("maps %s to %s and back", (tool, name) => {
    const map = createNameMap([tool, "other.tool"]);
    expect(providerName(tool)).toBe(name);
    expect(name).toMatch(PROVIDER_NAME);
    expect(map.toProvider(tool)).toBe(name);
    expect(map.toTool(name)).toBe(tool);
  });

  it("refuses two tools that would get one name, naming both", () => {
    expect(() => createNameMap(["fs.read", "fs_read"])).toThrow(
      /"fs\.read" and "fs_read" would both be called "fs_read"/,
    );
    expect(() => createNameMap(["a:b", "a__b"])).toThrow(/would both be called "a__b"/);
  });

  it("refuses a tool that is listed twice, one without a name, and one that is too long", () => {
    expect(() => createNameMap(["exec", "exec"])).toThrow(/"exec" is listed twice/);
    expect(() => createNameMap([""])).toThrow(/has no name of 1 to 128 characters/);
    expect(() => createNameMap(["x".repeat(129)])).toThrow(/has no name of 1 to 128 characters/);
    expect(() => createNameMap(["x".repeat(128)])).not.toThrow();
  });

  it("shortens what is too long for a provider, differently for each tool, and maps it back", () => {
    const tools = ["a", "b"].map((end) => `service:${"x".repeat(80)}${end}`);
    const map = createNameMap([...tools, "exec"], 64);
    const names = tools.map((tool) => map.toProvider(tool));
    expect(names.map((name) => name.length)).toEqual([64, 64]);
    expect(names.map((name) => map.toTool(name))).toEqual(tools);
    expect(map.toProvider("exec")).toBe("exec");
  });

  it("does not guess a tool from a name it never gave", () => {
    const map = createNameMap(["fs.read"]);
    expect(map.toTool("fs_write")).toBeUndefined();
    expect(map.toTool("fs.read")).toBeUndefined();
    expect(map.toTool("__proto__")).toBeUndefined();
    expect(() => map.toProvider("fs.write")).toThrow();
  });
});
