import type { Session } from "../session.ts";

/** How a command acts as an operator: approves, locks, issues. */
export interface OperatorAccess {
  /** True: `open` asks nothing, and gives the session that the command has already, or one that was proven. */
  readonly isOpen: boolean;
  /** False where `open` is known to fail, so that no question is asked in vain. */
  isPossible(): Promise<boolean>;
  /** The same control plane as an operator. Throws a UsageError that says what to do where that cannot be. */
  open(): Promise<Session>;
  close(): void;
}

/** What proves that a person is present who may act as an operator. */
export interface Presence {
  /** False where it is known that nothing can prove it here. */
  isPossible(): Promise<boolean>;
  /** The operator's token. Throws a UsageError where presence was not proven. */
  token(): Promise<string>;
}

/** Access for a caller that brought its own token or login: the control plane knows whether that is an operator's. */
export function operatorItself(session: () => Session): OperatorAccess {
  return {
    isOpen: true,
    isPossible: () => Promise.resolve(true),
    open: async () => session(),
    close: () => undefined,
  };
}

/** Access by presence, which is proven once. */
export function operatorByPresence(presence: Presence, connect: (token: string) => Session): OperatorAccess {
  let proven: Session | undefined;
  let proving: Promise<Session> | undefined;
  return {
    get isOpen() {
      return proven !== undefined;
    },
    isPossible: async () => proven !== undefined || (await presence.isPossible()),
    open() {
      proving ??= presence
        .token()
        .then((token) => {
          proven = connect(token);
          return proven;
        })
        .finally(() => {
          if (proven === undefined) proving = undefined;
        });
      return proving;
    },
    close: () => proven?.close(),
  };
}
