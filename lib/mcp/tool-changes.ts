import type { ServerEvent, ServerEventBus } from "@modelcontextprotocol/server";
import type { McpToolset } from "./toolset.ts";

/** How often the tools are looked at while a client follows their changes, in milliseconds. */
const LOOK_MS = 1000;

/**
 * Notifies clients when the tools have changed. Looks, and only while a client follows: that a device is gone is no event
 * but a lease that ran out, and which replica it was linked to does not matter.
 */
export function createToolChanges(toolset: () => McpToolset): ServerEventBus {
  const listeners = new Set<(event: ServerEvent) => void>();
  let timer: NodeJS.Timeout | undefined;
  let known: McpToolset | undefined;
  const publish = (event: ServerEvent) => {
    for (const listener of listeners) listener(event);
  };
  const look = () => {
    const now = toolset();
    if (now === known) return;
    known = now;
    publish({ kind: "tools_list_changed" });
  };
  return {
    publish,
    subscribe(listener) {
      if (listeners.size === 0) {
        known = toolset();
        timer = setInterval(look, LOOK_MS);
        timer.unref();
      }
      listeners.add(listener);
      return () => {
        listeners.delete(listener);
        if (listeners.size === 0) clearInterval(timer);
      };
    },
  };
}
