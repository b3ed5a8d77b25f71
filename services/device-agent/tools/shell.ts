import type { Shell } from "../../../gen/ts/reeve/tools/v1/shell_pb.ts";
import type { HeldFolder } from "../roots/held.ts";
import { runProgram } from "./outcome.ts";
import { runPlan, runPlannedProgram } from "./plan/run-plan.ts";
import { shellProgram } from "./shell-program.ts";
import type { ToolContext, ToolFamily } from "./tool.ts";

/** Programs and shell text. */
export const shellTools: ToolFamily<typeof Shell> = {
  exec: async ({ argv, cwd, stdin, env, timeoutMs }, context) => {
    using folder = workFolder(context, cwd);
    const { plan } = context;
    if (plan !== undefined) return await runPlannedProgram(context, plan, { cwd: folder.at(), stdin, timeoutMs });
    return await runProgram(context, { argv, cwd: folder.at(), stdin, env, timeoutMs });
  },

  eval: async ({ command, cwd, timeoutMs }, context) => {
    using folder = workFolder(context, cwd);
    if (context.plan !== undefined) {
      const planned = await runPlan(context, context.plan, { cwd: folder.at(), timeoutMs });
      return { ...planned, cmdExecuted: command };
    }
    const run = await runProgram(context, { argv: shellProgram(command), cwd: folder.at(), timeoutMs });
    return { ...run, cmdExecuted: command };
  },
};

function workFolder({ roots }: ToolContext, cwd: string): HeldFolder {
  const folder = cwd || roots.workDir;
  return folder === undefined ? NO_FOLDER : roots.openFolder(folder, { access: "read", field: "cwd" });
}

/** Where programs run on a device that grants no folder: it is not granted either, and there is nothing to hold. */
const NO_FOLDER: HeldFolder = { path: "/", at: (name = "") => `/${name}`, [Symbol.dispose]: () => undefined };
