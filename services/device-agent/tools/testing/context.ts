import { createSecretKey, randomBytes, randomUUID } from "node:crypto";
import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ConnectError } from "@connectrpc/connect";
import type { ErrorReason } from "../../../../gen/ts/reeve/common/v1/error_pb.ts";
import { faultDetail } from "../../../../lib/fault/fault.ts";
import { parseHosts } from "../../../../lib/hosts/host-list.ts";
import { sealerWith } from "../../../../lib/identity/sealer.ts";
import type { Secret } from "../../../../lib/secrets/store.ts";
import { createLocalExecutor } from "../../executor/local.ts";
import { createRoots } from "../../roots/roots.ts";
import type { RootsOptions } from "../../roots/roots-options.ts";
import { secretsOfCall } from "../../secrets/call-secrets.ts";
import type { UndoBounds } from "../../undo/change.ts";
import { openUndoJournal } from "../../undo/journal.ts";
import type { ToolContext } from "../tool.ts";

/** A folder of its own and a context whose only root it is. */
export interface TestContext extends Disposable {
  folder: string;
  context: ToolContext;
  /** What the tools sent as live output. */
  live: { stdout: string; stderr: string };
}

/** What a test changes of its context. */
export interface TestContextOptions extends Partial<RootsOptions> {
  env?: Record<string, string>;
  undoBounds?: UndoBounds;
  now?: () => number;
  hosts?: readonly string[];
  secrets?: ReadonlyMap<string, Secret>;
}

/** Makes a folder and a context with the real executor, roots and journal. Disposing removes the folders. */
export function createTestContext(options: TestContextOptions = {}): TestContext {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "reeve-tools-")));
  const kept = mkdtempSync(join(tmpdir(), "reeve-undo-"));
  const { env, undoBounds, now = Date.now, hosts = [], secrets = new Map<string, Secret>(), ...roots } = options;
  const held = createRoots({ read: [], write: [folder], workDir: folder, ...roots });
  const live = { stdout: "", stderr: "" };
  const sealer = sealerWith(createSecretKey(randomBytes(32)));
  const undo = openUndoJournal({ folder: kept, sealer, now, ...(undoBounds && { bounds: undoBounds }) });
  const context: ToolContext = {
    callId: randomUUID(),
    signal: new AbortController().signal,
    timeoutMs: 60_000,
    executor: createLocalExecutor({
      env: { ...process.env, HOME: folder, ...env },
      writeRoots: held.granted.filter(({ write }) => write).map(({ path }) => path),
      killGraceMs: 300,
    }),
    roots: held,
    undo,
    hosts: parseHosts(hosts),
    secrets: secretsOfCall({ read: (name) => secrets.get(name) }),
    emit(stream, chunk) {
      live[stream] += Buffer.from(chunk).toString();
    },
    jobs() {
      throw new Error("no calls are kept here");
    },
  };
  const dispose = (): void => {
    held[Symbol.dispose]();
    undo[Symbol.dispose]();
    for (const made of [folder, kept]) rmSync(made, { recursive: true, force: true });
  };
  return { folder, context, live, [Symbol.dispose]: dispose };
}

/** The fault that a tool throws: its reason, metadata and message. Throws where the tool did not. */
export async function faultOf(
  action: Promise<unknown> | (() => unknown),
): Promise<{ reason: ErrorReason; metadata: Record<string, string>; message: string }> {
  try {
    await (typeof action === "function" ? action() : action);
  } catch (error: unknown) {
    const detail = faultDetail(error);
    if (detail === undefined) throw error;
    return { reason: detail.reason, metadata: { ...detail.metadata }, message: ConnectError.from(error).rawMessage };
  }
  throw new Error("no fault was thrown");
}
