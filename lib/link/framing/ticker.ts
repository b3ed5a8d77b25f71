interface Ticker {
  listeners: Set<() => void>;
  timer: NodeJS.Timeout;
}

const tickers = new Map<number, Ticker>();

/**
 * Calls the listener about every `ms` milliseconds until the returned function is called. All listeners of an interval
 * share one timer, because a thousand idle links should not need a thousand. It keeps no process alive. Ticks that a busy
 * process missed are not made up for: who counts ticks does not take its own stall for another's silence.
 */
export function onTick(ms: number, listener: () => void): () => void {
  let ticker = tickers.get(ms);
  if (ticker === undefined) {
    const listeners = new Set<() => void>();
    const timer = setInterval(() => {
      for (const each of listeners) each();
    }, ms);
    timer.unref();
    ticker = { listeners, timer };
    tickers.set(ms, ticker);
  }
  const { listeners, timer } = ticker;
  // A function of its own, so that the same listener twice is two.
  const own = (): void => listener();
  listeners.add(own);
  return () => {
    if (!listeners.delete(own) || listeners.size > 0) return;
    clearInterval(timer);
    tickers.delete(ms);
  };
}
