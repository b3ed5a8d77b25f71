import { create, type JsonObject, toJson } from "@bufbuild/protobuf";
import { type Run, type RunSpec, RunSpecSchema } from "../../../gen/ts/reeve/agent/v1/run_pb.ts";
import type { StartRunRequest } from "../../../gen/ts/reeve/agent/v1/run_service_pb.ts";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { Role } from "../../../gen/ts/reeve/options/v1/access_pb.ts";
import { allowsTool, type Principal } from "../../../lib/auth/principal.ts";
import { inScope, scopedId } from "../../../lib/auth/scoped-id.ts";
import { fault } from "../../../lib/fault/fault.ts";
import { canonicalJson, sha256Hex } from "../../../lib/sign/canonical.ts";
import type { Engines } from "./engines.ts";
import type { RunStore } from "./store.ts";

/** What a run starts with, once its agent's configuration is in it. */
export interface PreparedRun {
  /** What the engine's worker carries out. */
  input: JsonObject;
  /** What was left out. */
  warnings: readonly string[];
}

/** What starting runs needs. */
export interface StartPorts {
  store: Pick<RunStore, "owner" | "insert" | "get">;
  engines: Engines;
  /** The spec with its agent's configuration where it leaves something out. Throws for an agent or a model that is not known. */
  resolve(spec: RunSpec): Promise<RunSpec>;
  /** Reads the tools once, for as long as the run goes on. */
  freeze(runId: string, spec: RunSpec, principal: Principal): Promise<PreparedRun>;
  newRunId(): string;
  now(): number;
  /** This process, for runs that end with it. */
  self: string;
}

/** A run, and what was left out of it. */
export interface StartedRun {
  run: Run | undefined;
  warnings: readonly string[];
}

/** The most characters of an id, so that the ids of its calls fit. */
const MAX_ID = 40;

/**
 * Writes a run down and hands it to its engine; with an id that exists, returns that one. Throws before anything was
 * written: UNTRUSTED_CONTENT, RUN_ID_REUSED, RUN_UNSUPPORTED, INVALID_INPUT, or what the registry says of its devices.
 */
export async function startRun(
  ports: StartPorts,
  { spec: asked = create(RunSpecSchema), runId: chosen }: StartRunRequest,
  principal: Principal,
): Promise<StartedRun> {
  const { store, engines } = ports;
  const ownerOf = async (id: string) => (await store.owner(id))?.principalId;
  // Also for those who see all runs: whose id it is decides whose run it is.
  const id = chosen === "" ? ports.newRunId() : await ownId(chosen, principal, ownerOf);
  const digest = sha256Hex(canonicalJson(toJson(RunSpecSchema, asked)));
  const same = async (): Promise<StartedRun | undefined> => {
    const old = await store.owner(id);
    if (old === undefined) return undefined;
    if (old.principalId === principal.id && old.digest === digest) return { run: await store.get(id), warnings: [] };
    throw fault(
      ErrorReason.RUN_ID_REUSED,
      { run_id: chosen },
      { message: `the id ${chosen} was used for another run` },
    );
  };
  const old = await same();
  if (old !== undefined) return old;

  const untrusted = asked.untrusted || principal.roles.includes(Role.TRIGGER);
  const resolved = await ports.resolve(asked);
  const spec = { ...resolved, toolsAllowed: toolsWithin(resolved.toolsAllowed, principal), untrusted };
  if (untrusted) refuseDevices(asked, spec);
  const durable = durabilityOf(asked, engines);
  const { input, warnings } = await ports.freeze(id, spec, principal);
  const owner = durable ? "" : ports.self;
  const inserted = await store.insert({
    id,
    principal,
    digest,
    spec,
    input,
    durable,
    untrusted,
    owner,
    createMs: ports.now(),
  });
  // Another request with this id was first.
  if (!inserted) return (await same()) ?? { run: undefined, warnings };
  await engines.of(durable).start(id);
  return { run: await store.get(id), warnings };
}

/** Nothing that reads what a stranger wrote may act on a machine, however it was configured. */
function refuseDevices(asked: RunSpec, { devices }: RunSpec): void {
  if (devices.length === 0) return;
  const field = asked.devices.length > 0 ? "spec.devices" : "spec.agent";
  const message = `${field}: a run over untrusted content has no devices`;
  throw fault(ErrorReason.UNTRUSTED_CONTENT, { field }, { message });
}

/**
 * The tools of a run that the starter's own token allows, too: a run is no way around its list. An empty list would mean all
 * tools, so that one of which nothing is left is refused.
 */
function toolsWithin(wanted: readonly string[], principal: Principal): string[] {
  if (principal.tools === undefined) return [...wanted];
  const both = wanted.length === 0 ? [...principal.tools] : wanted.filter((tool) => allowsTool(principal, tool));
  if (both.length > 0) return both;
  const metadata = { tool: wanted.join(", "), allowed: principal.tools.join(", ") };
  throw fault(ErrorReason.TOOL_NOT_ALLOWED, metadata, {
    message: "spec.tools_allowed: your token allows none of these",
  });
}

function durabilityOf({ durable }: RunSpec, engines: Engines): boolean {
  if (durable !== true) return durable ?? engines.hasDurable;
  if (engines.hasDurable) return true;
  const message = "spec.durable: there is no engine for durable runs here: start with --durable";
  throw fault(ErrorReason.RUN_UNSUPPORTED, { field: "spec.durable" }, { message });
}

async function ownId(
  chosen: string,
  principal: Principal,
  ownerOf: (id: string) => Promise<string | undefined>,
): Promise<string> {
  if ((await ownerOf(chosen)) === principal.id) return chosen;
  const scoped = await scopedId(chosen, principal, { maxLength: MAX_ID, ownerOf });
  const taken = await ownerOf(scoped);
  return taken === undefined || taken === principal.id ? scoped : inScope(chosen, principal.id, MAX_ID);
}
