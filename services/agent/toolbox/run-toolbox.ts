import type { RegistryClient } from "../../../client/registry.ts";
import type { RunInput } from "../run-input/run-input.ts";
import { createSubmittingToolbox } from "./submitting-toolbox.ts";
import type { Toolbox } from "./toolbox.ts";

/** The tools of one stored run. The registry is not dialed before the first of its calls. */
export function createRunToolbox(client: () => Promise<RegistryClient>, input: RunInput): Toolbox {
  let toolbox: Promise<Toolbox> | undefined;
  const opened = async (): Promise<Toolbox> => {
    toolbox ??= client().then((one) => createSubmittingToolbox({ client: one, input }));
    try {
      return await toolbox;
    } catch (error: unknown) {
      toolbox = undefined;
      throw error;
    }
  };
  return {
    submit: async (call) => (await opened()).submit(call),
    look: async (call, why) => (await opened()).look(call, why),
    cancel: async (call) => (await opened()).cancel(call),
  };
}
