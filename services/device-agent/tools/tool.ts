import type { DescService, JsonObject, MessageInitShape, MessageShape } from "@bufbuild/protobuf";
import type { Plan } from "../../../lib/command/plan/plan.ts";
import type { InputProblem } from "../../../lib/fault/invalid-input.ts";
import type { HostList } from "../../../lib/hosts/host-list.ts";
import type { Codec } from "../../../lib/tool/codec.ts";
import type { PreviewFact } from "../../../lib/tool/preview.ts";
import type { ToolSpec } from "../../../lib/tool/spec.ts";
import type { Executor } from "../executor/executor.ts";
import type { Isolation } from "../executor/sandbox/isolation.ts";
import type { Roots } from "../roots/roots.ts";
import type { CallSecrets } from "../secrets/call-secrets.ts";
import type { UndoJournal } from "../undo/journal.ts";
import type { Jobs } from "./jobs.ts";

/** What a tool may use while it runs one call. */
export interface ToolContext {
  /** The call that it runs. */
  callId: string;
  /** Aborted when the call is canceled or its time is up. */
  signal: AbortSignal;
  /** The longest the call may take, in milliseconds: as the caller asks, cut to the tool's and the device's limits. */
  timeoutMs: number;
  /** Runs programs. The only way to start one. */
  executor: Executor;
  /** Which paths the manifest grants. */
  roots: Roots;
  /** Keeps what calls change of files. */
  undo: UndoJournal;
  /** Where it may connect. */
  hosts: HostList;
  /** Resolves the secrets that the arguments name by handles. What it resolved is masked in the call's end. */
  secrets: CallSecrets;
  /** What the call's command is executed as, where its grant names a plan. Undefined: as its arguments say. */
  plan?: Plan | undefined;
  /** Sends live output to those who follow the call. A promise asks for a pause until it resolves. */
  emit(stream: "stdout" | "stderr", chunk: Uint8Array): Promise<void> | undefined;
  /** The calls that the caller may look after. */
  jobs(): Jobs;
}

/** A tool of this device, from whichever provider. */
export interface DeviceTool {
  spec: ToolSpec;
  /** Where a program does its work that no call starts: how far that one is kept apart. */
  elsewhere?: Isolation;
  /** True where it takes no place from other calls and waits for none: it looks after calls. Default false. */
  immediate?: boolean;
  /** Checks arguments. Pure: nothing runs before `run` is called. */
  prepare(args: JsonObject): PreparedInput;
}

/** An input that holds to the tool's schema, ready to run once; or what is wrong with it. */
export type PreparedInput =
  | {
      ok: true;
      run(context: ToolContext): Promise<JsonObject>;
      /** What the input stands for now. Undefined for a tool that has no preview. */
      preview: ((context: ToolContext) => Promise<PreviewFact[]>) | undefined;
    }
  | { ok: false; problems: readonly InputProblem[] };

/** A tool with its implementation. `run` gets a valid input; it throws `fault(...)` for what a caller can act on. */
export function deviceTool<Input>(
  spec: ToolSpec,
  codec: Codec<Input>,
  run: (input: Input, context: ToolContext) => Promise<JsonObject>,
  preview?: (input: Input, context: ToolContext) => Promise<PreviewFact[]>,
): DeviceTool {
  return {
    spec,
    prepare(args) {
      const parsed = codec.parse(args);
      if (!parsed.ok) return parsed;
      const { input } = parsed;
      return {
        ok: true,
        run: (context) => run(input, context),
        preview: preview && ((context) => preview(input, context)),
      };
    },
  };
}

/**
 * The previews of one tool family: what the input of an RPC stands for, read and nothing changed. Throws as the tool does where it
 * would fail.
 */
export type ToolPreviews<S extends DescService> = {
  [M in keyof S["method"]]?: (
    input: MessageShape<S["method"][M]["input"]>,
    context: ToolContext,
  ) => Promise<PreviewFact[]>;
};

/**
 * The implementation of one tool family: one function for each RPC of its service. The compiler names the one that
 * is missing. A function gets the validated input and returns the output; it throws `fault(...)` for what a caller
 * can act on.
 */
export type ToolFamily<S extends DescService> = {
  [M in keyof S["method"]]: (
    input: MessageShape<S["method"][M]["input"]>,
    context: ToolContext,
  ) => Promise<MessageInitShape<S["method"][M]["output"]>>;
};
