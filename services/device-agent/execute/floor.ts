import { SandboxLevel } from "../../../gen/ts/reeve/device/v1/device_pb.ts";
import type { Executor } from "../executor/executor.ts";
import { type Isolation, stricter } from "../executor/sandbox/isolation.ts";
import { levelOf } from "../executor/sandbox/levels.ts";

/** The executor of one call. */
export interface CallExecutor {
  executor: Executor;
  /** The lowest level of the programs that it was asked to run so far; UNSPECIFIED where there were none. */
  level(): SandboxLevel;
}

/** An executor that keeps every program of a call at least as far apart as the floor, whatever its tool asks for. */
export function withFloor(executor: Executor, floor: Isolation): CallExecutor {
  let lowest: SandboxLevel = SandboxLevel.UNSPECIFIED;
  return {
    executor: {
      isolation: executor.isolation,
      shortfall: executor.shortfall,
      droppedFolders: executor.droppedFolders,
      resolve: (program) => executor.resolve(program),
      run(spec) {
        const isolation = stricter(spec.isolation ?? "none", floor);
        const level = levelOf(isolation);
        if (lowest === SandboxLevel.UNSPECIFIED || level < lowest) lowest = level;
        return executor.run({ ...spec, isolation });
      },
    },
    level: () => lowest,
  };
}
