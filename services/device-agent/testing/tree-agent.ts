// A process with an executor whose program hides a tree of processes in the sandbox, to be killed by a test.
// Arguments: a text for the command lines of the tree. Prints "ready" when the tree stands.
import { hidingTree } from "./hiding-tree.ts";
import { openTestSandbox } from "./test-sandbox.ts";

const [tag = ""] = process.argv.slice(2);
const sandbox = await openTestSandbox();
process.send?.(sandbox.folder);
await sandbox.run(["sh", "-c", hidingTree(tag)], {
  timeoutMs: 600_000,
  isolation: "workspace",
  onOutput: () => void process.stdout.write("ready\n"),
});
