/** Lets one waiter go on when something has happened. What happens while nobody waits is remembered, once. */
export interface Gate {
  open(): void;
  wait(): Promise<void>;
}

/** A gate that is shut. */
export function createGate(): Gate {
  let isOpen = false;
  let wake: (() => void) | undefined;
  return {
    open() {
      isOpen = true;
      wake?.();
      wake = undefined;
    },
    async wait() {
      if (!isOpen) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
      isOpen = false;
    },
  };
}
