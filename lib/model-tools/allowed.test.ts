import { expect, it } from "vitest";
import { narrowTools } from "./allowed.ts";

const tools = [{ name: "exec" }, { name: "fs.read" }, { name: "fs.list" }];

it("keeps everything where nothing is listed", () => {
  expect(narrowTools(tools, [])).toEqual({ tools, warnings: [] });
});

it("keeps what is listed, in the tools' own order", () => {
  expect(narrowTools(tools, ["fs.list", "exec"]).tools.map((tool) => tool.name)).toEqual(["exec", "fs.list"]);
});

it("drops unknown names with a warning each, once", () => {
  expect(narrowTools(tools, ["exec", "memory.recall", "memory.recall"])).toEqual({
    tools: [{ name: "exec" }],
    warnings: ['tools_allowed lists unknown tool "memory.recall": dropped'],
  });
});
