import { open } from "node:fs/promises";
import { equals, fromBinary } from "@bufbuild/protobuf";
import { type FileDescriptorProto, FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { type AnnouncedTools, AnnouncedToolsSchema } from "../../../../gen/ts/reeve/device/v1/manifest_pb.ts";
import { createServiceTransport, type ServiceTransport } from "../../../../lib/rpc-client/transport.ts";
import { cleanOutput } from "../../../../lib/sanitize/sanitize.ts";
import { isKnownFile } from "../../../../lib/toolschema/known-files.ts";
import type { Announcement, ProvidedTools, ToolProvider } from "../provider.ts";
import { announceServices } from "./announce.ts";
import { rpcTool } from "./call-service.ts";
import { reflectFiles } from "./reflect.ts";
import type { LocalService } from "./service-list.ts";

/** How long a service has to answer with its descriptors, in milliseconds. */
const REFLECTION_MS = 5000;

/** How often the services are asked whether their RPCs have changed, in milliseconds. */
const REFRESH_MS = 30_000;

/** The largest file with descriptors, in bytes: what is announced of it may be smaller. */
const MAX_FILE_BYTES = 16 * 1024 * 1024;

/** What a service announces; the problem is why it announces nothing. */
interface ServiceState {
  definitions: readonly AnnouncedTools[];
  problem: string | undefined;
}

/**
 * The annotated RPCs of the gRPC services that the owner listed. Never rejects: a service that cannot be reached, or whose
 * descriptors cannot be used, is unavailable with the reason. All are asked again every 30 seconds; one whose
 * descriptors cannot be read then keeps what it announced before.
 */
export async function openGrpcTools(
  list: readonly LocalService[],
  { refreshMs = REFRESH_MS }: { refreshMs?: number } = {},
): Promise<ToolProvider> {
  const services = list.map((service) => ({
    service,
    transport: createServiceTransport({ baseUrl: service.url, protocol: "grpc" }),
    state: { definitions: [], problem: undefined } as ServiceState,
  }));
  const listeners = new Set<() => void>();
  const refresh = async (): Promise<void> => {
    const read = await Promise.all(
      services.map(async (one) => ({ one, state: await readService(one.service, one.transport, one.state) })),
    );
    const changed = read.filter(({ one, state }) => !isSame(state, one.state));
    // All at once, so that a listener learns of a change as soon as anyone can see it.
    for (const { one, state } of changed) one.state = state;
    if (changed.length > 0) for (const listener of listeners) listener();
  };
  await refresh();
  // Reads again only when the last read has ended, and keeps no process alive.
  let timer: NodeJS.Timeout | undefined;
  const schedule = (): void => {
    timer = setTimeout(() => void refresh().then(() => timer && schedule()), refreshMs).unref();
  };
  if (services.length > 0) schedule();
  return {
    provided: () => providedBy(services),
    onChange(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    [Symbol.dispose]() {
      clearTimeout(timer);
      timer = undefined;
      listeners.clear();
      for (const { transport } of services) transport.close();
    },
  };
}

function providedBy(
  services: readonly { service: LocalService; transport: ServiceTransport; state: ServiceState }[],
): ProvidedTools {
  return {
    tools: [],
    known: [],
    announced: services.flatMap(({ transport, state }) =>
      state.definitions.map(
        (definition): Announcement => ({
          definition,
          implement: ({ spec, method }) => {
            if (method === undefined) throw new Error(`${spec.name} is no RPC`);
            return rpcTool(spec, method, transport);
          },
        }),
      ),
    ),
    unavailable: services.flatMap(({ service: { name }, state }) =>
      state.problem === undefined ? [] : { tool: name, program: name, why: state.problem },
    ),
  };
}

async function readService(
  service: LocalService,
  transport: ServiceTransport,
  before: ServiceState,
): Promise<ServiceState> {
  const { name, descriptorFile } = service;
  try {
    const files = descriptorFile === undefined ? await reflected(transport) : await readFiles(descriptorFile);
    const definitions = announceServices(name, files);
    const problem = definitions.length > 0 ? undefined : "none of its RPCs has the option (reeve.options.v1.tool)";
    return { definitions, problem };
  } catch (error: unknown) {
    return before.definitions.length > 0 ? before : { definitions: [], problem: problemOf(service, error) };
  }
}

async function reflected(transport: ServiceTransport): Promise<FileDescriptorProto[]> {
  const { files } = await reflectFiles(transport, AbortSignal.timeout(REFLECTION_MS));
  return [...files.values()];
}

async function readFiles(path: string): Promise<FileDescriptorProto[]> {
  await using file = await open(path);
  const { size } = await file.stat();
  if (size > MAX_FILE_BYTES) throw new Error(`larger than ${MAX_FILE_BYTES} bytes`);
  const set = fromBinary(FileDescriptorSetSchema, await file.readFile());
  // As a file that is being written.
  if (set.file.length === 0) throw new Error("holds no descriptors");
  return set.file.filter((one) => !isKnownFile(one.name));
}

function problemOf({ url, descriptorFile }: LocalService, error: unknown): string {
  const said = cleanOutput(error instanceof Error ? error.message : String(error)).text.slice(0, 300);
  return descriptorFile === undefined
    ? `${url} does not give its descriptors by server reflection: ${said}`
    : `its descriptors cannot be read from ${descriptorFile}: ${said}`;
}

function isSame(a: ServiceState, b: ServiceState): boolean {
  return (
    a.problem === b.problem &&
    a.definitions.length === b.definitions.length &&
    a.definitions.every((one, at) => {
      const other = b.definitions[at];
      return other !== undefined && equals(AnnouncedToolsSchema, one, other);
    })
  );
}
