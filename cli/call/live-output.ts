import type { CommandContext, Output } from "../command-context.ts";
import { safeFor } from "../print/escape.ts";

/** Which of a program's outputs. */
export type OutputName = "stdout" | "stderr";

/** Prints what programs print, to the output of the same name. */
export interface LiveOutput {
  print(name: OutputName, text: string): void;
  /** How much was printed there, in UTF-16 code units. */
  length(name: OutputName): number;
}

/** On a terminal nothing that a terminal would act on gets through; elsewhere the text goes as it came. */
export function createLiveOutput({ stdout, stderr }: Pick<CommandContext, "stdout" | "stderr">): LiveOutput {
  const outputs: Readonly<Record<OutputName, Output>> = { stdout, stderr };
  const lengths: Record<OutputName, number> = { stdout: 0, stderr: 0 };
  return {
    print(name, text) {
      if (text === "") return;
      lengths[name] += text.length;
      outputs[name].write(safeFor(outputs[name], text));
    },
    length: (name) => lengths[name],
  };
}
