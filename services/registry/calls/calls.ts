import { setTimeout as sleep } from "node:timers/promises";
import { CallState } from "../../../gen/ts/reeve/call/v1/call_pb.ts";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import type { Principal } from "../../../lib/auth/principal.ts";
import { inScope, scopedId, seesAll } from "../../../lib/auth/scoped-id.ts";
import { fault } from "../../../lib/fault/fault.ts";
import type { Logger } from "../../../lib/log/log.ts";
import type { Directory } from "../devices/directory.ts";
import { createFinisher, type FinishPorts } from "./finish.ts";
import { createCallFollower, type FollowOptions } from "./follow.ts";
import { type GovernedCall, withArguments } from "./governed-call.ts";
import { createHeldTwins } from "./held-twins.ts";
import { isEnd } from "./lifecycle.ts";
import { createLiveCall, type LiveCall, type OpenCall } from "./live-call.ts";
import { createOutcomeRelay } from "./outcome-relay.ts";
import { type OutputSource, outputSource } from "./output-source.ts";
import type { Ownership } from "./ownership.ts";
import type { Quotas } from "./quotas.ts";
import { type CallRequest, type ReceivedCall, type ReceiveFacts, receiveCall } from "./receive.ts";
import { decide, type PolicyAnswer, type RunPorts, resumeCall, runCall } from "./run.ts";
import type { CallStore, PendingOutcome, StoredCall } from "./store.ts";

/** All calls: the live ones in memory, the rest in the store. Every way to run a tool comes through `begin`. */
export interface Calls {
  /**
   * The gate. Receives a request and runs its call; resolves when the call is on disk or is known to be an old one.
   * Throws a fault where it never became a call.
   */
  begin(request: CallRequest): Promise<OpenCall | EndedCall>;
  /** A call that the principal may see, whichever replica owns it; NOT_FOUND otherwise. */
  find(callId: string, principal: Principal): Promise<OpenCall | EndedCall>;
  /** The same as it stands now, with its arguments as they may be shown. */
  read(callId: string, principal: Principal): Promise<GovernedCall>;
  /** What the device of a call keeps of its output; for those who may see the call. */
  outputOf(found: { readonly call: GovernedCall }): OutputSource;
  /** A call that this replica owns. */
  owned(callId: string): LiveCall | undefined;
  /** Resumes a call that this replica owns by now, unless it has done so. */
  resume(stored: StoredCall): void;
  /** Brings an outcome that is in the store into the audit log. */
  sendOutcome(outcome: PendingOutcome): void;
  /** How many calls are owned here. */
  readonly open: number;
  /** The calls that are owned here. */
  running(): Iterable<LiveCall>;
  /**
   * Waits until no call is running and the audit log has the ends, where policy is available; at most `ms`. Calls that are held
   * or queued are no reason to wait: they go on after a restart.
   */
  drain(ms: number): Promise<void>;
  /** Follows no more calls of other replicas. */
  close(): void;
  readonly store: CallStore;
}

/** A call that has ended. */
export interface EndedCall {
  readonly call: GovernedCall;
  readonly ended: Promise<GovernedCall>;
}

/** Dependencies of the calls. */
export interface CallsOptions
  extends Omit<RunPorts, "finisher" | "isMine">,
    ReceiveFacts,
    Omit<FinishPorts, "onFinished" | "endElsewhere"> {
  logger: Logger;
  directory: Directory;
  /** This replica. */
  self: string;
  ownership: Pick<Ownership, "wantCancel" | "isMine">;
  /** Asks another replica about a call that it owns; see FollowOptions. */
  ask: FollowOptions["ask"];
  /** Counts what each principal has open. */
  quotas: Quotas;
  /** True where no other replica uses the database: whatever is owned was owned here. */
  alone: boolean;
  /** An event is in the outbox. */
  onEvent(): void;
  /** A call that was owned here has ended. Default: nothing happens. */
  onEnded?(call: GovernedCall): void;
}

/** States in which a call waits for a person or its device, and may for days. */
const WAITING = new Set<CallState>([CallState.HELD, CallState.QUEUED]);

export function createCalls(options: CallsOptions): Calls {
  const live = new Map<string, LiveCall>();
  /** Calls that are being inserted into the store, so that the same id sent twice at the same time is one call. */
  const arriving = new Map<string, { one: LiveCall; arrived: Promise<unknown> }>();
  let closed = false;
  const owned = (callId: string) => live.get(callId) ?? arriving.get(callId)?.one;
  const outcomes = createOutcomeRelay(options);
  const follower = createCallFollower({ ...options, owned });
  const finisher = createFinisher({
    ...options,
    onFinished(call, outcome) {
      live.delete(call.id);
      options.queue.forget(call);
      options.onEvent();
      options.onEnded?.(call);
      if (outcome !== undefined) outcomes.send(call.id, outcome);
    },
    endElsewhere(one) {
      live.delete(one.call.id);
      return follower.end(one.call.id);
    },
  });
  const isMine = async (callId: string) => options.alone || (await options.ownership.isMine(callId));
  const ports: RunPorts = { ...options, finisher, isMine };

  const follow = (one: LiveCall, run: Promise<void>): void => {
    live.set(one.call.id, one);
    run.catch((error: unknown) => {
      if (live.get(one.call.id) === one) live.delete(one.call.id);
      one.interrupt(error);
      if (closed) return;
      const next = options.alone ? "the next start resumes it" : "a replica resumes it soon";
      options.logger.error({ err: error, call_id: one.call.id, next }, "call interrupted");
    });
  };
  const known = async (callId: string): Promise<OpenCall | EndedCall | undefined> => {
    const running = live.get(callId);
    if (running !== undefined) return running;
    const stored = await options.store.get(callId);
    if (stored === undefined) return undefined;
    const isOver = options.alone || isEnd(stored.call.status.state);
    return isOver ? { call: stored.call, ended: Promise.resolve(stored.call) } : follower.follow(stored.call);
  };

  const find = async (callId: string, principal: Principal): Promise<OpenCall | EndedCall> => {
    for (const id of [callId, inScope(callId, principal.id)]) {
      // A cancel may come while the call that it is for is still being written down, or turns out to be an old one.
      await arriving.get(id)?.arrived;
      const found = await known(id);
      if (found !== undefined && maySee(principal, found.call)) return found;
    }
    throw fault(ErrorReason.NOT_FOUND, { resource: `calls/${callId}` }, { message: `no call ${callId}` });
  };
  const twins = createHeldTwins({ ...options, live, known });
  const ownerOf = async (callId: string): Promise<string | undefined> =>
    (live.get(callId)?.call ?? (await options.store.get(callId))?.call)?.spec.principalId;
  const arrive = async (one: LiveCall, { shown, question }: ReceivedCall): Promise<boolean> => {
    const { call, args } = one;
    const { promise: decided, resolve: decideBy } = Promise.withResolvers<PolicyAnswer>();
    const insert = () => options.store.insert(call, { args, shown }, decided);
    // Begun before policy is asked: where one database has both, no decision is committed before its call.
    const inserted = options.queue.note(call, question)?.then(insert) ?? insert();
    arriving.set(one.call.id, { one, arrived: inserted.catch(() => undefined) });
    try {
      // Written down and decided on at the same time; nothing is sent to the device before both are on disk.
      decideBy(decide(question, ports, one.canceled.signal));
      if (!(await inserted)) return false;
      follow(
        one,
        decided.then((answer) => runCall(one, answer, ports)),
      );
      return true;
    } finally {
      arriving.delete(one.call.id);
      // A follower may have found it before it turned out to be an old call, or not to be written down.
      if (live.get(one.call.id) !== one) one.interrupt(new Error(`the call ${one.call.id} did not begin here`));
    }
  };

  return {
    store: options.store,
    async begin(request) {
      if (options.directory.linked(request.device) === undefined) await options.directory.find(request.device);
      const id =
        request.chosenId === "" ? request.callId : await scopedId(request.chosenId, request.principal, { ownerOf });
      const received = receiveCall({ ...request, callId: id }, options);
      const { call, args, tool } = received;
      // The first of two that come at once may still turn out to be an old call, or not to be written down at all.
      for (let twin = arriving.get(call.id); twin !== undefined; twin = arriving.get(call.id)) await twin.arrived;
      const running = live.get(call.id);
      if (running !== undefined) return same(running, call);
      const held = request.joinHeld ? await twins.find(received) : undefined;
      if (held !== undefined) {
        request.onJoin?.();
        return held;
      }
      const ticket = options.quotas.open(request.principal, call, args.length);
      const one = createLiveCall(call, args, tool, ticket);
      const arrived = arrive(one, received);
      if (request.joinHeld)
        twins.deciding(
          received,
          arrived.then((isNew) => (isNew ? one.decided : undefined)),
        );
      if (await arrived) {
        await one.decided;
        return one;
      }
      const old = await known(call.id);
      if (old === undefined) throw fault(ErrorReason.CALL_ID_REUSED, { call_id: call.id });
      return same(old, call);
    },
    find,
    async read(callId, principal) {
      const { call } = await find(callId, principal);
      const shown = await options.store.shownArguments(call.id);
      return shown === undefined ? call : withArguments(call, shown);
    },
    outputOf: (found) => outputSource(found, options.link),
    owned,
    resume({ call, args, cancelWanted }) {
      if (owned(call.id) !== undefined) return;
      const one = createLiveCall(call, args, undefined, options.quotas.reopen(call, args.length));
      if (cancelWanted) one.canceled.abort();
      follow(one, resumeCall(one, ports));
    },
    sendOutcome: ({ callId, outcome }) => outcomes.send(callId, outcome),
    get open() {
      return live.size;
    },
    running: () => live.values(),
    async drain(ms) {
      const running = [...live.values()].filter(({ call }) => !WAITING.has(call.status.state));
      const given = new AbortController();
      const timeout = sleep(ms, undefined, { signal: given.signal }).catch(() => undefined);
      const quiet = Promise.allSettled(running.map(({ ended }) => ended)).then(() =>
        options.policy.up ? outcomes.drained() : undefined,
      );
      await Promise.race([quiet, timeout]);
      given.abort();
    },
    close() {
      closed = true;
      follower.close();
    },
  };
}

/** Operators and auditors see every call, an agent its own. */
function maySee(principal: Principal, call: GovernedCall): boolean {
  return seesAll(principal) || call.spec.principalId === principal.id;
}

/** The call that has this id already, if it is the same; trying again is safe only for the same. */
function same<C extends OpenCall | EndedCall>(old: C, wanted: GovernedCall): C {
  if (isEqual(old.call, wanted)) return old;
  throw fault(
    ErrorReason.CALL_ID_REUSED,
    { call_id: wanted.id },
    { message: `the call id ${wanted.id} was used for another call` },
  );
}

function isEqual({ spec: some }: GovernedCall, { spec: other }: GovernedCall): boolean {
  return (
    some.deviceId === other.deviceId &&
    some.tool === other.tool &&
    some.argsDigest === other.argsDigest &&
    some.principalId === other.principalId
  );
}
