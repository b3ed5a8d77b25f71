import { randomBytes } from "node:crypto";
import type { AgentResult } from "../../services/agent/loop/events.ts";
import { runInline } from "../../services/agent/loop/run-inline.ts";
import type { Message, Model } from "../../services/agent/providers/model.ts";
import type { RunLimits } from "../../services/agent/run-input/limits.ts";
import { newRunInput } from "../../services/agent/run-input/run-input.ts";
import { defaultSystemPrompt } from "../../services/agent/run-input/system-prompt.ts";
import { createRegistryCaller } from "../../services/agent/toolbox/registry-caller.ts";
import type { Toolset } from "../../services/agent/toolset/toolset.ts";
import { createAskQueue } from "../approval/ask-queue.ts";
import { watchInterrupts } from "../call/interrupts.ts";
import { heldText } from "../call/show-call.ts";
import type { CommandContext, Output } from "../command-context.ts";
import { canAsk } from "../print/prompt.ts";
import { styleFor } from "../print/style.ts";
import { createNarrator } from "./narrate.ts";
import type { ChatSessions } from "./principal.ts";

/** How a conversation is held. */
export interface ConversationOptions {
  sessions: Pick<ChatSessions, "model" | "person">;
  context: CommandContext;
  model: Model;
  toolset: Toolset;
  limits: Partial<RunLimits>;
  /** How long a held call is waited for, in milliseconds. */
  approvalWaitMs: number;
  /** Where the model's text goes as it comes. */
  text: Output;
}

/** A conversation between a person and a model that uses tools. */
export interface Conversation {
  /** Asks, narrates what happens, and resolves with the end of the run. Ctrl-C cancels what runs; again, it leaves. */
  ask(prompt: string): Promise<AgentResult>;
}

/** Held calls are asked about on the terminal where there is one; elsewhere it is said how they can be approved. */
export async function createConversation(options: ConversationOptions): Promise<Conversation> {
  const { sessions, context, model, toolset, approvalWaitMs } = options;
  const runId = `chat-${randomBytes(9).toString("hex")}`;
  const caller = createRegistryCaller({ client: sessions.model.registry, toolset, approvalWaitMs });
  const system = defaultSystemPrompt({ devices: toolset.devices.map((device) => device.name) });
  const onEvent = createNarrator({
    text: options.text,
    activity: context.stderr,
    style: styleFor(context, context.stderr),
    ...(await approver(sessions, context)),
  });
  let messages: readonly Message[] = [];
  return {
    async ask(prompt) {
      const interrupts = watchInterrupts(context, "stopping; Ctrl-C again leaves at once");
      try {
        const { limits } = options;
        const input = newRunInput({ runId, toolset, system, messages, prompt, limits });
        const result = await runInline(input, { model, caller, onEvent, signal: interrupts.signal });
        messages = result.messages;
        return result;
      } finally {
        interrupts.close();
      }
    },
  };
}

/** The person decides as another principal than the model: a model that approves its own calls would be no gate. */
async function approver({ model, person }: Pick<ChatSessions, "model" | "person">, context: CommandContext) {
  const mayDecide = canAsk(context) && person?.hasPolicy && (await person.operator.isPossible());
  const queue = mayDecide ? createAskQueue(person, context) : undefined;
  const approvals = new Map<string, string>();
  return {
    onHeld({ callId, approvalId }: { callId: string; approvalId: string }): void {
      approvals.set(callId, approvalId);
      if (queue === undefined) context.stderr.write(`  ${heldText({ id: callId, approvalId })}\n`);
      else void queue.ask(approvalId, () => model.registry.cancelCall({ callId }));
    },
    onReleased(callId: string): void {
      queue?.withdraw(approvals.get(callId) ?? "");
    },
  };
}
