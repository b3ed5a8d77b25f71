import { open } from "node:fs/promises";
import { fromBinary } from "@bufbuild/protobuf";
import { type FileDescriptorProto, FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import type { AnnouncedService } from "../../../gen/ts/reeve/device/v1/manifest_pb.ts";
import { cleanOutput } from "../../../lib/sanitise/sanitise.ts";
import { createServiceTransport, type ServiceTransport } from "../../../lib/serve/client.ts";
import { readAnnouncements } from "../../../lib/toolschema/announcements.ts";
import { isKnownFile } from "../../../lib/toolschema/known-files.ts";
import type { ToolEntry, UnavailableTool } from "../tools/index.ts";
import { announceServices } from "./announce.ts";
import { announcedEntry } from "./call-service.ts";
import { reflectFiles } from "./reflect.ts";
import type { LocalService } from "./service-list.ts";

/** The services that the owner listed, as far as they can be used. */
export interface LocalServices extends Disposable {
  /** For the manifest. */
  announced: AnnouncedService[];
  tools: ToolEntry[];
  /** Annotated RPCs that are no tools; and services that cannot be used at all, by the owner's name for them. */
  unavailable: UnavailableTool[];
  /** By tool: the digest of its input schema, in hex. */
  schemaDigests: ReadonlyMap<string, string>;
}

/** How long a service has to tell its descriptors when the agent starts, in milliseconds. */
const REFLECTION_MS = 5000;

/** The largest file with descriptors, in bytes: what is announced of it may be smaller. */
const MAX_FILE_BYTES = 16 * 1024 * 1024;

/**
 * Finds out what the listed services offer and connects to them. Never rejects: a service that is not there, or whose
 * descriptors cannot be used, is listed with why. It is asked again at the agent's next start.
 */
export async function openLocalServices(list: readonly LocalService[]): Promise<LocalServices> {
  const opened = await Promise.all(list.map(openService));
  const byName = new Map(opened.map(({ name, transport }) => [name, transport]));
  const { services, tools, unavailable, refused } = readAnnouncements(opened.flatMap(({ services }) => services));
  const toolEntries = tools.map(({ tool, method }) => {
    const name = tool.name.slice(0, tool.name.indexOf(":"));
    const transport = byName.get(name);
    if (transport === undefined) throw new Error(`no service is called ${name}`);
    return announcedEntry({ tool, method }, transport);
  });
  return {
    announced: services,
    tools: toolEntries,
    unavailable: [
      ...unavailable.map(({ tool, why }) => ({ tool, program: tool, why })),
      ...refused.map(({ name, why }) => ({ tool: name, program: name, why })),
      ...opened.flatMap(({ name, problem }) =>
        problem === undefined ? [] : { tool: name, program: name, why: problem },
      ),
    ],
    schemaDigests: new Map(tools.map(({ tool }) => [tool.name, tool.schemaDigest])),
    [Symbol.dispose]: () => {
      for (const { transport } of opened) transport.close();
    },
  };
}

interface OpenedService {
  name: string;
  transport: ServiceTransport;
  services: AnnouncedService[];
  /** Why there is nothing to announce, where something went wrong. */
  problem: string | undefined;
}

async function openService(service: LocalService): Promise<OpenedService> {
  const { name, url, descriptorFile } = service;
  const transport = createServiceTransport({ baseUrl: url, protocol: "grpc" });
  try {
    const files = descriptorFile === undefined ? await reflected(transport) : await readFiles(descriptorFile);
    const services = announceServices(name, files);
    const problem = services.length > 0 ? undefined : "none of its RPCs has the option (reeve.tool.v1.tool)";
    return { name, transport, services, problem };
  } catch (error: unknown) {
    return { name, transport, services: [], problem: problemOf(service, error) };
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
  return set.file.filter((one) => !isKnownFile(one.name));
}

function problemOf({ url, descriptorFile }: LocalService, error: unknown): string {
  const said = cleanOutput(error instanceof Error ? error.message : String(error)).text.slice(0, 300);
  return descriptorFile === undefined
    ? `${url} does not tell its descriptors by server reflection: ${said}`
    : `its descriptors cannot be read from ${descriptorFile}: ${said}`;
}
