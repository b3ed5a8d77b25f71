import type { JsonObject } from "@bufbuild/protobuf";
import { durationMs } from "@bufbuild/protobuf/wkt";
import type { RegistryClient } from "../../../client/registry.ts";
import { OnDeviceGone, type RunLimits, type RunSpec } from "../../../gen/ts/reeve/agent/v1/run_pb.ts";
import type { FrozenRun } from "../engine/carry-run.ts";
import { newRunInput } from "../run-input/run-input.ts";
import { defaultSystemPrompt } from "../run-input/system-prompt.ts";
import { loadToolset, type Toolset } from "../toolset/toolset.ts";
import type { PreparedRun } from "./start-run.ts";

/** The most characters of a call's purpose. */
const MAX_PURPOSE = 1000;

/**
 * The input of a run: all that it depends on, read once. A run without devices gets no tools, and for it the registry is not
 * even asked; a list of no devices would mean all of them there.
 *
 * @param clientOf the registry as an agent's calls reach it.
 */
export async function freezeRun(
  runId: string,
  spec: RunSpec,
  clientOf: (agent: string) => Promise<RegistryClient>,
): Promise<PreparedRun> {
  const { devices, toolsAllowed, limits } = spec;
  const toolset: Toolset =
    devices.length === 0 ? NO_TOOLS : await loadToolset(await clientOf(spec.agent), { devices, toolsAllowed });
  const names = toolset.devices.map(({ name }) => name);
  const input = newRunInput({
    runId,
    prompt: spec.prompt,
    system: spec.system || defaultSystemPrompt({ devices: names }),
    toolset,
    limits: limitsOf(limits),
    mayAsk: spec.mayAsk,
    onDeviceGone: spec.onDeviceGone === OnDeviceGone.QUEUE ? "queue" : "report",
    purpose: `run ${runId}${spec.purpose === "" ? "" : `: ${spec.purpose}`}`.slice(0, MAX_PURPOSE),
    untrusted: spec.untrusted,
    ...(limits?.maxWait && durationMs(limits.maxWait) > 0 && { maxWaitSeconds: durationMs(limits.maxWait) / 1000 }),
  });
  const frozen: FrozenRun = { model: spec.model, agent: spec.agent, input };
  return { input: JSON.parse(JSON.stringify(frozen)) as JsonObject, warnings: toolset.warnings };
}

const NO_TOOLS: Toolset = { devices: [], tools: [], warnings: [] };

function limitsOf(limits: RunLimits | undefined) {
  const { maxTurns = 0, maxTokens = 0n, maxToolCalls = 0, maxParallel = 0 } = limits ?? {};
  return {
    ...(maxTurns > 0 && { maxTurns }),
    ...(maxTokens > 0n && { maxTokens: Number(maxTokens) }),
    ...(maxToolCalls > 0 && { maxToolCalls }),
    ...(maxParallel > 0 && { maxParallel }),
  };
}
