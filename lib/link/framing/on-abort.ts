const hubs = new WeakMap<AbortSignal, Set<() => void>>();

/**
 * Calls the listener when the signal is aborted, until the returned function is called. All listeners of a signal share
 * one, because a signal walks through all that it has to remove one: a thousand links that end would take a million steps.
 */
export function onAbort(signal: AbortSignal, listener: () => void): () => void {
  const hub = hubs.get(signal) ?? openHub(signal);
  // A function of its own, so that the same listener twice is two.
  const own = (): void => listener();
  hub.add(own);
  return () => void hub.delete(own);
}

function openHub(signal: AbortSignal): Set<() => void> {
  const hub = new Set<() => void>();
  hubs.set(signal, hub);
  signal.addEventListener(
    "abort",
    () => {
      for (const listener of hub) listener();
      hub.clear();
    },
    { once: true },
  );
  return hub;
}
