import { setTimeout as sleep } from "node:timers/promises";
import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { CallSchema, CallState } from "../../../gen/ts/reeve/call/v1/call_pb.ts";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import {
  type FanOut,
  FanOutSchema,
  type FanOutSpec,
  FanOutSpecSchema,
  FanOutState,
  type ListFanOutsRequest,
  type StartFanOutRequest,
} from "../../../gen/ts/reeve/fanout/v1/fan_out_service_pb.ts";
import { Role } from "../../../gen/ts/reeve/options/v1/access_pb.ts";
import { type Principal, requireRole } from "../../../lib/auth/principal.ts";
import { scopedId, seesAll } from "../../../lib/auth/scoped-id.ts";
import { fault } from "../../../lib/fault/fault.ts";
import type { Logger } from "../../../lib/log/log.ts";
import { canonicalJson, sha256Hex } from "../../../lib/sign/canonical.ts";
import { type GovernedCall, governedCall } from "../calls/governed-call.ts";
import { type Face, observedIngress } from "../calls/ingress.ts";
import type { Membership } from "../cluster/membership.ts";
import type { Directory } from "../devices/directory.ts";
import { chooseDevices } from "./choose.ts";
import { planWaves } from "./plan.ts";
import { summaryOf, verdictOf, wavesOf } from "./progress.ts";
import { findCall, questionAbout, queueMsOf, type RunPorts, runFanOut } from "./run.ts";
import type { StoredFanOut } from "./store.ts";

/** What fan-outs use. */
export interface FanOutPorts extends RunPorts {
  directory: Pick<Directory, "all" | "resolve">;
  membership: Pick<Membership, "self" | "isGone">;
  newFanOutId(): string;
  logger: Logger;
  /** How often to look for what no replica goes on with, and for requested cancellations, in milliseconds. Default 500. */
  lookMs?: number;
}

/** Fan-outs, which go on whether or not their caller stays. */
export interface FanOuts {
  /**
   * Plans a fan-out, writes it down and starts it; with an id that exists, returns that one. Throws what is wrong with
   * the selection, the tool or its arguments before anything was written, and CALL_ID_REUSED for the id of another one.
   */
  start(request: StartFanOutRequest, principal: Principal, face: Face): Promise<StoredFanOut>;
  /** One that the principal may see. Throws NOT_FOUND. */
  find(id: string, principal: Principal): Promise<StoredFanOut>;
  list(request: ListFanOutsRequest, principal: Principal): Promise<{ fanOuts: StoredFanOut[]; nextPageToken: string }>;
  /** Cancels one, and resolves when it has ended, or as it is after 5 seconds. */
  cancel(id: string, principal: Principal): Promise<StoredFanOut>;
  /** Goes on with what no replica goes on with. */
  look(): Promise<void>;
  /** Lets go of everything: another replica, or the next start, goes on with it. */
  close(): Promise<void>;
}

/** The most characters of an id, so that the ids of its calls fit. */
const MAX_ID = 40;
const CANCEL_WAIT_MS = 5000;
const DEFAULT_PAGE = 50;

export function createFanOuts(ports: FanOutPorts): FanOuts {
  const { store, membership, logger, lookMs = 500 } = ports;
  const closing = new AbortController();
  const running = new Map<string, { canceled: AbortController; done: Promise<void> }>();

  const goOn = (one: StoredFanOut): void => {
    if (closing.signal.aborted || running.has(one.id)) return;
    const canceled = new AbortController();
    if (one.cancelRequested) canceled.abort();
    const done = runFanOut({ one, ports, closing: closing.signal, canceled: canceled.signal })
      .catch((err: unknown) => logger.error({ err, fan_out: one.id }, "fan-out interrupted"))
      .finally(() => running.delete(one.id));
    running.set(one.id, { canceled, done });
  };
  const look = async (): Promise<void> => {
    const gone = (await store.owners()).filter((owner) => owner === "" || membership.isGone(owner));
    if (gone.length > 0) {
      for (const one of await store.claim(gone)) {
        logger.info({ fan_out: one.id }, "fan-out resumed");
        goOn(one);
      }
    }
    for (const [id, { canceled }] of running) {
      if ((await store.find(id))?.cancelRequested) canceled.abort();
    }
  };
  const looking = (async () => {
    for (;;) {
      await sleep(lookMs, undefined, { signal: closing.signal }).catch(() => undefined);
      if (closing.signal.aborted) return;
      await look().catch((err: unknown) => logger.warn({ err }, "fan-outs cannot be looked for"));
    }
  })();
  const find = async (id: string, principal: Principal): Promise<StoredFanOut> => {
    const one = await store.find(id);
    if (one !== undefined && (seesAll(principal) || one.principal.id === principal.id)) return refreshed(one, ports);
    throw fault(ErrorReason.NOT_FOUND, { resource: `fanOuts/${id}` }, { message: `no fan-out ${id}` });
  };

  return {
    async start({ spec = create(FanOutSpecSchema), fanOutId }, principal, face) {
      const ownerOf = async (chosen: string) => (await store.find(chosen))?.principal.id;
      const id =
        fanOutId === "" ? ports.newFanOutId() : await scopedId(fanOutId, principal, { maxLength: MAX_ID, ownerOf });
      const digest = digestOf(spec);
      const same = (old: StoredFanOut): Promise<StoredFanOut> => {
        if (old.principal.id === principal.id && old.digest === digest) return refreshed(old, ports);
        const message = `the id ${fanOutId} was used for another fan-out`;
        throw fault(ErrorReason.CALL_ID_REUSED, { call_id: fanOutId }, { message });
      };
      const old = fanOutId === "" ? undefined : await store.find(id);
      if (old !== undefined) return same(old);
      const devices = chooseDevices(spec, ports.directory).map(({ id: deviceId, name }) => ({ id: deviceId, name }));
      const ingress = observedIngress(face, principal);
      const waves = planWaves(devices, spec);
      const planned = { id, digest, spec, principal, ingress, waves, createMs: ports.now() };
      await questionAbout(planned, ports.receive);
      const isNew = await store.insert(planned);
      const one = await store.find(id);
      if (one === undefined) throw fault(ErrorReason.CALL_ID_REUSED, { call_id: fanOutId });
      if (!isNew) return same(one);
      goOn(one);
      return one;
    },
    find,
    async list({ pageSize, pageToken }, principal) {
      const limit = pageSize === 0 ? DEFAULT_PAGE : pageSize;
      const after = pageToken === "" ? {} : { after: pageToken };
      const owned = seesAll(principal) ? {} : { principalId: principal.id };
      const found = await store.list({ limit: limit + 1, ...after, ...owned });
      const fanOuts = found.slice(0, limit);
      return { fanOuts, nextPageToken: found.length > limit ? (fanOuts.at(-1)?.id ?? "") : "" };
    },
    async cancel(id, principal) {
      const one = await find(id, principal);
      if (one.principal.id !== principal.id) requireRole(principal, [Role.OPERATOR]);
      if (one.ended) return one;
      await store.requestCancel(id);
      running.get(id)?.canceled.abort();
      const tooLong = AbortSignal.timeout(CANCEL_WAIT_MS);
      for (let now = one; ; now = await find(id, principal)) {
        if (now.ended || tooLong.aborted) return now;
        await sleep(20, undefined, { signal: tooLong }).catch(() => undefined);
      }
    },
    look,
    async close() {
      closing.abort();
      await Promise.all([looking, ...[...running.values()].map(({ done }) => done)]);
      await store.release();
    },
  };
}

/** The resource. */
export function fanOutOf(one: StoredFanOut): FanOut {
  const { id, spec, principal, createMs, state, startedWaves, approvalId, summary, ended, endMs } = one;
  return create(FanOutSchema, {
    id,
    spec,
    principalId: principal.id,
    createTime: timestampFromMs(createMs),
    status: {
      state,
      waves: wavesOf(one.waves),
      startedWaves,
      approvalId,
      ...(ended && summary && { summary }),
      ...(endMs !== undefined && { endTime: timestampFromMs(endMs) }),
    },
  });
}

/** An ended fan-out whose queued calls may have ended since: its summary as it is now. */
async function refreshed(one: StoredFanOut, { calls }: Pick<FanOutPorts, "calls">): Promise<StoredFanOut> {
  const { summary } = one;
  if (!one.ended || summary === undefined || summary.queued.length === 0) return one;
  const results = new Map<string, GovernedCall>();
  for (const device of one.waves.flat()) {
    if (summary.notStarted.includes(device.name)) continue;
    const call = summary.queued.includes(device.name) ? (await findCall(one, device, calls))?.call : undefined;
    const failed = summary.failed[device.name] ?? create(CallSchema, { status: { state: CallState.SUCCEEDED } });
    results.set(device.name, call ?? governedCall(failed));
  }
  const { stopped, message } = summary;
  const now = summaryOf(one.id, one.waves, results, stopped && { error: stopped, message });
  const hasSucceeded = [...results.values()].every((call) => verdictOf(call) === "succeeded") && now.succeeded;
  return { ...one, summary: now, state: hasSucceeded ? FanOutState.SUCCEEDED : one.state };
}

/** Everything that makes two requests with one id the same fan-out. */
function digestOf(spec: FanOutSpec): string {
  const { selector, devices, tool, params = {}, waveSize, canary, maxDevices, purpose } = spec;
  const sizes = [waveSize, canary, maxDevices, spec.stopAfterFailures, queueMsOf(spec)];
  return sha256Hex(canonicalJson([selector, devices, tool, params, sizes, purpose]));
}
