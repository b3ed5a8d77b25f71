import { safeFor } from "../print/escape.ts";
import type { Output, World } from "../world.ts";

/** Which of a program's outputs. */
export type OutputName = "stdout" | "stderr";

/** Prints what programs print, to the output of the same name. */
export interface LiveOutput {
  print(name: OutputName, text: string): void;
  /** Whether anything was printed there. */
  printed(name: OutputName): boolean;
}

/** On a terminal nothing that a terminal would act on gets through; elsewhere the text goes as it came. */
export function createLiveOutput({ stdout, stderr }: Pick<World, "stdout" | "stderr">): LiveOutput {
  const outputs: Readonly<Record<OutputName, Output>> = { stdout, stderr };
  const printed = new Set<OutputName>();
  return {
    print(name, text) {
      if (text === "") return;
      printed.add(name);
      outputs[name].write(safeFor(outputs[name], text));
    },
    printed: (name) => printed.has(name),
  };
}
