import type { ScriptedTurn } from "../../services/agent/scripted-model/script.ts";

/** A conversation in two parts, each one prompt of a person's, for any provider's format. */
export interface FormatScript {
  turns: readonly ScriptedTurn[];
  prompts: readonly string[];
}

/** Uses that go well and that do not, in parallel and in turns: all that differs between formats, and all that a gate can say. */
export function formatScript(file: string): FormatScript {
  const usage = { input: 120, output: 40 };
  const held = (id: string, word: string) => ({
    id,
    name: "shell_eval",
    input: { command: `printf ${word} | tee /dev/null` },
  });
  return {
    prompts: ["Look at this machine.", "And once more?"],
    turns: [
      {
        thinking: "Two at once, and a third.",
        text: "I will look: ä😀.",
        toolUses: [
          { id: "use_1", name: "exec", input: { argv: ["uname"] } },
          { id: "use_2", name: "fs_read", input: { path: file } },
          { id: "use_3", name: "fs_read", input: { path: "/none/at/all" } },
        ],
        usage,
      },
      {
        toolUses: [
          { id: "use_4", name: "exec", input: '{"argv":["rm","-rf","/tmp/x' },
          { id: "use_5", name: "no_such_tool", input: {} },
          { id: "use_6", name: "exec", input: { argv: "not a list" } },
          { id: "use_7", name: "device_ping", input: "" },
        ],
        usage,
      },
      { text: "This waits.", toolUses: [held("use_8", "yes"), held("use_9", "no")], usage },
      { toolUses: [{ id: "use_10", name: "shell_eval", input: { command: "rm -rf /" } }], usage },
      { text: "It is ", stop: "max_tokens", usage },
      { text: "Linux.", usage },
      // An id that came earlier, as servers that count from 0 in each turn send it.
      { toolUses: [{ id: "use_1", name: "exec", input: { argv: ["uname", "-s"] } }], usage },
      { text: "Still Linux.", usage },
    ],
  };
}
