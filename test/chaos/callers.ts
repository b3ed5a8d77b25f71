import { setTimeout as sleep } from "node:timers/promises";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import { isEnd } from "../../client/call-progress.ts";
import { type CompleteCall, completeCall } from "../../client/complete-call.ts";
import { type RegistryClient, registryClient } from "../../client/registry.ts";
import type { Call } from "../../gen/ts/reeve/call/v1/call_pb.ts";
import { faultDetail, reasonName } from "../../lib/fault/fault.ts";
import { createServiceTransport } from "../../lib/rpc-client/transport.ts";
import type { PlannedCall } from "./planned-calls.ts";
import { createRandom } from "./random.ts";
import { createStreamCaller, type StreamCaller } from "./stream-caller.ts";

/** Those who make calls, as careful clients do: with an id of their own, again and again, until there is an end. */
export interface Callers {
  /** Makes a call at its time and resolves with the end that its caller was given. */
  attend(planned: PlannedCall, startMs: number): Promise<CompleteCall>;
  /** How often each kind of error was met. */
  readonly errors: ReadonlyMap<string, number>;
  close(): void;
}

/** Where calls can be made, and by whom. */
export interface CallersOptions {
  /** Addresses that lead to a registry: a load balancer, and replicas themselves. */
  urls: readonly string[];
  tokens: { operator: string; agent: string };
  /** The authority to trust, PEM. */
  ca: string;
  seed: number;
}

interface RegistryAt {
  registry: RegistryClient;
  stream: StreamCaller;
  close(): void;
}

/** How long one try may take, in milliseconds: a caller without an answer asks again, maybe somewhere else. */
const TRY_MS = 30_000;

/** Codes that say that trying the same again cannot help. Every other error is one of a part that is broken. */
const FINAL = new Set([
  Code.InvalidArgument,
  Code.AlreadyExists,
  Code.PermissionDenied,
  Code.Unauthenticated,
  Code.FailedPrecondition,
  Code.Unimplemented,
]);

/** Callers with connections of their own to each address, as an operator and as an agent. */
export function createCallers({ urls, tokens, ca, seed }: CallersOptions): Callers {
  const errors = new Map<string, number>();
  const registries = { operator: urls.map(registryAt(tokens.operator)), agent: urls.map(registryAt(tokens.agent)) };
  let turn = 0;
  let closed = false;

  function registryAt(token: string): (baseUrl: string) => RegistryAt {
    return (baseUrl) => {
      const transport = createServiceTransport({
        baseUrl,
        token,
        ca,
        pingIntervalMs: 1000,
        pingTimeoutMs: 2000,
        connectTimeoutMs: 5000,
      });
      const registry = registryClient(transport);
      const stream = createStreamCaller(registry);
      return {
        registry,
        stream,
        close() {
          stream.close();
          transport.close();
        },
      };
    };
  }
  /** Tries until it works, each time at a registry that chance gives. Undefined results are tried again, too. */
  const persist = async <T>(
    planned: PlannedCall,
    what: string,
    work: (one: RegistryAt) => Promise<T | undefined>,
  ): Promise<T> => {
    const random = createRandom(seed + ++turn);
    for (;;) {
      try {
        const result = await work(random.pick(registries[planned.as]));
        if (result !== undefined) return result;
      } catch (error: unknown) {
        const { code, rawMessage } = ConnectError.from(error);
        const reason = faultDetail(error)?.reason;
        count(errors, `${what}: ${Code[code]} ${reason === undefined ? plain(rawMessage) : reasonName(reason)}`);
        if (FINAL.has(code)) throw new Error(`${what} ${planned.id}: ${rawMessage}`, { cause: error });
      }
      if (closed) throw new Error(`${what} ${planned.id}: its end is not waited for any more`);
      await sleep(random.between(50, 400));
    }
  };
  const call = (planned: PlannedCall) =>
    persist(planned, planned.way, async ({ registry, stream }) => {
      const request = requestOf(planned);
      const signal = AbortSignal.timeout(TRY_MS);
      const reported =
        planned.way === "stream"
          ? await stream.call(request, signal)
          : (await registry.callTool({ ...request, approvalWait: durationFromMs(TRY_MS / 3) }, { signal })).call;
      return reported && endIn(reported);
    });
  const cancel = (planned: PlannedCall) =>
    persist(planned, "cancel", async ({ registry }) => {
      const { call: reported } = await registry.cancelCall(
        { callId: planned.id },
        { signal: AbortSignal.timeout(TRY_MS) },
      );
      return reported && endIn(reported);
    });

  return {
    errors,
    async attend(planned, startMs) {
      await sleep(Math.max(0, startMs + planned.atMs - performance.now()));
      const ended = call(planned);
      if (planned.cancelAfterMs === undefined) return ended;
      const [reported] = await Promise.all([ended, sleep(planned.cancelAfterMs).then(() => cancel(planned))]);
      return reported;
    },
    close() {
      closed = true;
      for (const one of [...registries.operator, ...registries.agent]) one.close();
    },
  };
}

function requestOf({ id, device, argv, stdin, queueMs }: PlannedCall) {
  const params = { argv, ...(stdin === undefined ? {} : { stdin }) };
  return { tool: "exec", device, params, callId: id, queueTimeout: durationFromMs(queueMs ?? 0) };
}

function endIn(call: Call): CompleteCall | undefined {
  const complete = completeCall(call);
  return isEnd(complete.status.state) ? complete : undefined;
}

/** An error of the connection in words, without what differs each time. */
function plain(message: string): string {
  return message.replace(/\d+\.\d+\.\d+\.\d+:\d+/, "a registry");
}

function count(counts: Map<string, number>, what: string): void {
  counts.set(what, (counts.get(what) ?? 0) + 1);
}
