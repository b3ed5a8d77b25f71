// Takes the folder that is its argument, starts a program that outlives it, and prints the program's pid.
import { spawn } from "node:child_process";
import { lockFolder } from "../folder-lock.ts";

lockFolder(process.argv[2] ?? "", { program: "holder", setting: "REEVE_TEST_DIR" });
const program = spawn("sleep", ["60"], { detached: true, stdio: "ignore" });
process.stdout.write(`${program.pid}\n`);
process.on("SIGTERM", () => {
  program.kill("SIGKILL");
  process.exit(0);
});
