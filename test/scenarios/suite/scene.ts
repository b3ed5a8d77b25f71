import { randomBytes } from "node:crypto";
import { readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll } from "vitest";
import { isEnd } from "../../../client/call-progress.ts";
import { type CompleteCall, completeCall } from "../../../client/complete-call.ts";
import type { Call } from "../../../gen/ts/reeve/call/v1/call_pb.ts";
import type { EventBus } from "../../../lib/events/bus.ts";
import { DEFAULT_POLICY_FILE } from "../../../services/policy/rules/default-policy.ts";
import { type Caller, callerOf } from "../../../testkit/clients.ts";
import { eventually } from "../../../testkit/eventually.ts";

/** A control plane with one device, however it is run. */
export interface Backend {
  registry: { url: string };
  policy: { url: string };
  tokens: { operator: string; agent: string };
  /** The names of its devices, sorted; "this" is the one that the scenarios use. Default: only that one. */
  devices?: readonly string[];
  /** The device's only root: it may be read and written. */
  work: string;
  /** Each replica of policy, where there is more than one behind `policy`. Default: only that one. */
  policies?: readonly { url: string }[];
  /** The policy file, which policy looks at again when it changes. */
  policyFile: string;
  /** The bus that its events go to, where the test can reach it. */
  bus?: EventBus;
  close(): Promise<void>;
}

/**
 * Starts one. Its device has the programs in `PROGRAMS` and no container engine, and its policy file is a copy of the
 * one that is shipped.
 */
export type StartBackend = () => Promise<Backend>;

/** The programs that the scenarios run. */
export const PROGRAMS = ["bash", "cat", "printf", "sleep", "tee", "touch", "uname"] as const;

/** What the scenarios of a suite share: one backend, and two who use it. */
export interface Scene {
  backend: Backend;
  operator: Caller;
  agent: Caller;
  /** A path in the device's root that nothing has used. */
  newFile(): string;
  newCallId(): string;
  /** The names of all devices, as errors list them. */
  deviceNames: string;
  /** Activates another policy, made from the one that is shipped, until the result is called. */
  changePolicy(change: (text: string) => string): Promise<() => Promise<void>>;
}

/** Starts a backend for the tests of this block. The result gives the scene, inside tests only. */
export function useScene(start: StartBackend): () => Scene {
  let scene: Scene | undefined;
  beforeAll(async () => {
    scene = sceneOf(await start());
  });
  afterAll(() => scene?.backend.close());
  return () => {
    if (scene === undefined) throw new Error("there is no scene outside of tests");
    return scene;
  };
}

function sceneOf(backend: Backend): Scene {
  const unique = () => randomBytes(8).toString("hex");
  const operator = callerOf(backend, backend.tokens.operator);
  return {
    backend,
    operator,
    agent: callerOf(backend, backend.tokens.agent),
    newFile: () => join(backend.work, `file-${unique()}.txt`),
    deviceNames: (backend.devices ?? ["this"]).join(", "),
    newCallId: () => `call-${unique()}`,
    async changePolicy(change) {
      const shipped = await readFile(DEFAULT_POLICY_FILE, "utf8");
      await activate(backend, change(shipped));
      return () => activate(backend, shipped);
    },
  };
}

/** Resolves when every replica has activated the text: which one decides about a call is the registry's choice. */
async function activate({ policyFile, registry, policy, policies, tokens }: Backend, text: string): Promise<void> {
  await writeFile(`${policyFile}.new`, text);
  await rename(`${policyFile}.new`, policyFile);
  for (const replica of policies ?? [policy]) {
    const operator = callerOf({ registry, policy: replica }, tokens.operator);
    await eventually(async () => {
      const active = await operator.policy.getPolicy({});
      if (active.text !== text) throw new Error(`the policy is not active: ${active.refused}`);
    });
  }
}

/** How long to wait for what comes a moment later. */

/** A call at its end, by any way of waiting for it. */
export async function endOf({ registry }: Caller, callId: string): Promise<CompleteCall> {
  let call: CompleteCall | undefined;
  for await (const { event } of registry.watchCall({ callId })) {
    if (event?.event.case === "call") call = completeCall(event.event.value);
  }
  if (call !== undefined && isEnd(call.status.state)) return call;
  throw new Error(`the watch ended before the call ${callId} did`);
}

/** The call that an answer must hold. */
export function callIn({ call }: { call?: Call | undefined }): CompleteCall {
  if (call === undefined) throw new Error("the answer holds no call");
  return completeCall(call);
}
