import type { Message } from "../providers/model.ts";
import type { Toolset } from "../toolset/toolset.ts";
import { DEFAULT_LIMITS, type RunLimits } from "./limits.ts";
import { defaultSystemPrompt } from "./system-prompt.ts";

/**
 * All that a run depends on, read once when it starts: plain JSON, so that it can be stored, and carried on by another
 * process days later as if nothing had changed meanwhile.
 */
export interface RunInput {
  /** With the model's own id of a use it makes a call's id. */
  runId: string;
  /** The system prompt. */
  system: string;
  /** The conversation so far. The last message is what the model is to answer. */
  messages: readonly Message[];
  limits: RunLimits;
  /** The tools, as their devices announced them when the run started. */
  toolset: Toolset;
  /** The model may ask a person. */
  mayAsk: boolean;
  /** How long a held call, a queued one or a question is waited for, in seconds. */
  maxWaitSeconds: number;
  /** What to do with a call whose device is offline. */
  onDeviceGone: "queue" | "report";
  /** Why the calls are made: shown to the person who decides. At most 1000 characters. */
  purpose: string;
  /** The prompt comes from somewhere that is not trusted: the run has no devices. */
  untrusted: boolean;
}

/** What a run is started with. */
export type RunRequest = Pick<RunInput, "runId" | "toolset"> &
  Partial<Omit<RunInput, "limits">> & {
    /** What the user asks. At least one of this and `messages`. */
    prompt?: string;
    /** Default DEFAULT_LIMITS, each. */
    limits?: Partial<RunLimits>;
  };

const WEEK_SECONDS = 7 * 24 * 3600;

/** The input of a run, with every default written down. */
export function newRunInput({ prompt, messages = [], limits, ...request }: RunRequest): RunInput {
  return {
    system: defaultSystemPrompt(),
    mayAsk: false,
    maxWaitSeconds: WEEK_SECONDS,
    onDeviceGone: "report",
    purpose: "",
    untrusted: false,
    ...request,
    messages: prompt === undefined ? messages : [...messages, { role: "user", text: prompt }],
    limits: { ...DEFAULT_LIMITS, ...limits },
  };
}
