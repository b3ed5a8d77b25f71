import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { WriteMode } from "../../../../gen/ts/reeve/tools/v1/file_system_pb.ts";
import { faultDetail } from "../../../../lib/fault/fault.ts";
import { createTestContext, type TestContext } from "../testing/context.ts";
import { fileToolsIn } from "../testing/file-tools.ts";
import { startLinkSwapper } from "../testing/link-swapper.ts";

/** How many operations are run beside the attacker. */
const OPERATIONS = Number(process.env.REEVE_SWAP_OPERATIONS ?? 1500);

let test: TestContext;
let outside: TestContext;
beforeEach(() => {
  test = createTestContext();
  outside = createTestContext();
  writeFileSync(`${outside.folder}/file`, "outside");
  writeFileSync(`${outside.folder}/outside-too`, "");
});
afterEach(() => {
  outside[Symbol.dispose]();
  test[Symbol.dispose]();
});

const at = (name: string): string => `${test.folder}/${name}`;
const tools = fileToolsIn(() => test.context);

/** The calls that can be undone. */
const changing: string[] = [];

async function undoable<T>(call: Promise<T>): Promise<T> {
  changing.push(tools.last());
  return await call;
}

/** One use of each tool at each place that is swapped. */
const OPERATIONS_BY_NAME: Record<string, () => Promise<unknown>> = {
  "read below a folder": () => tools.read({ path: at("swap/file") }),
  "read a file": () => tools.read({ path: at("leaf") }),
  "list a folder": () => tools.list({ path: at("swap"), depth: 2 }),
  "list around it": () => tools.list({ path: test.folder, depth: 3 }),
  "stat below a folder": () => tools.stat({ path: at("swap/file") }),
  "search a folder": () => tools.search({ path: at("swap"), pattern: "side" }),
  "search around it": () => tools.search({ path: test.folder, pattern: "side" }),
  "search a file": () => tools.search({ path: at("leaf"), pattern: "side" }),
  "create below a folder": () => undoable(tools.write({ path: at("swap/made"), text: "made", mode: WriteMode.CREATE })),
  "replace a file": () => undoable(tools.write({ path: at("leaf"), text: "inside" })),
  "append to a file": () => undoable(tools.write({ path: at("leaf"), text: "+", mode: WriteMode.APPEND })),
  "edit a file": () => undoable(tools.edit({ path: at("leaf"), oldText: "in", newText: "IN" })),
  "edit below a folder": () => undoable(tools.edit({ path: at("swap/file"), oldText: "in", newText: "IN" })),
  "move into a folder": () => undoable(tools.move({ path: at("leaf"), to: at("swap/moved"), overwrite: true })),
  "move within a folder": () => undoable(tools.move({ path: at("swap/made"), to: at("swap/moved"), overwrite: true })),
  "move a folder": () => undoable(tools.move({ path: at("swap"), to: at("elsewhere") })),
  "delete below a folder": () => undoable(tools.delete({ path: at("swap/moved") })),
  "delete the folder": () => undoable(tools.delete({ path: at("elsewhere"), recursive: true })),
  "undo a call": () => tools.undo(changing.splice(Math.floor(changing.length / 2), 1)[0] ?? "none"),
};

describe.runIf(process.platform === "linux")("beside a process that swaps names for links", () => {
  it(`no file tool reads, finds or changes anything outside, in ${OPERATIONS} operations`, {
    timeout: 3_600_000,
  }, async () => {
    const done = new Map<string, number>();
    let refused = 0;
    {
      await using _ = await startLinkSwapper(test.folder, outside.folder);
      const named = Object.entries(OPERATIONS_BY_NAME);
      for (let n = 0; n < OPERATIONS; n++) {
        const [name, operation] = named[n % named.length] ?? expect.fail();
        try {
          const answer = await operation();
          done.set(name, (done.get(name) ?? 0) + 1);
          expect(
            JSON.stringify(answer, (_key, value) => (typeof value === "bigint" ? Number(value) : value)),
          ).not.toContain("outside");
        } catch (error: unknown) {
          // Whatever happens is a fault with a type, not an error of the program.
          if (faultDetail(error) === undefined) throw error;
          refused++;
        }
        expect(readdirSync(outside.folder), name).toEqual(["file", "outside-too"]);
      }
    }
    expect(readFileSync(`${outside.folder}/file`, "utf8")).toBe("outside");
    expect(refused).toBeGreaterThan(0);
    // The attacker did not keep the tools from their work either.
    expect([...done.keys()].length).toBeGreaterThan(Object.keys(OPERATIONS_BY_NAME).length / 2);
  });
});
