/** How long requests are gathered, in milliseconds: a thousand devices that attach at once are one look. */
const GATHER_MS = 20;

/** Does a thing a moment after it was asked for, once for all who asked meanwhile, until it is stopped. */
export function gathered(work: () => void): { (): void; stop(): void } {
  let timer: NodeJS.Timeout | undefined;
  const ask = (): void => {
    timer ??= setTimeout(() => {
      timer = undefined;
      work();
    }, GATHER_MS);
  };
  return Object.assign(ask, { stop: () => clearTimeout(timer) });
}
