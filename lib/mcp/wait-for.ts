import type { BegunCall, McpCall } from "./gate.ts";
import { createProgress } from "./progress.ts";
import type { ToolRequest } from "./server.ts";

/**
 * Waits for a call: at most as long as the request allows, and until its client cancels or is gone.
 *
 * @param heldMs how long a held one waits for its person.
 */
export async function waitFor(begun: BegunCall, request: ToolRequest, heldMs: number): Promise<McpCall> {
  const { notify, waitMs, signal, canceled } = request;
  const stop = new AbortController();
  const end = () => stop.abort();
  const timer = setTimeout(end, waitMs);
  for (const one of [signal, canceled.signal]) {
    if (one.aborted) end();
    one.addEventListener("abort", end, { once: true });
  }
  const progress = notify && createProgress(notify);
  progress?.enter(begun.call.status);
  try {
    return await begun.wait({ heldMs, signal: stop.signal, onEvent: progress?.onEvent });
  } finally {
    progress?.close();
    clearTimeout(timer);
    for (const one of [signal, canceled.signal]) one.removeEventListener("abort", end);
  }
}
