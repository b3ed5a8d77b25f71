import { isLoopback } from "../../../../lib/config/loopback.ts";
import { isServiceName } from "../../../../lib/toolschema/names.ts";
import { parseList } from "../../settings.ts";

/** A gRPC service that the device's owner allows callers to use through the device. */
export interface LocalService {
  /** The name its tools begin with, such as "printer". */
  name: string;
  /** Where it listens: "http://127.0.0.1:50051", or https for one on another machine. */
  url: string;
  /** A file with its google.protobuf.FileDescriptorSet. Undefined: it is asked by server reflection. */
  descriptorFile: string | undefined;
}

/**
 * The services in "printer=http://127.0.0.1:50051,…", with the files in "printer=/path/descriptor-set.binpb,…". Throws an
 * Error that names the variable and the entry that is wrong.
 */
export function parseServices(
  services: { text: string; variable: string },
  descriptors: { text: string; variable: string },
): LocalService[] {
  const urls = parsePairs(services.text, services.variable);
  const files = parsePairs(descriptors.text, descriptors.variable);
  for (const name of files.keys()) {
    if (!urls.has(name)) throw new Error(`${descriptors.variable}: ${services.variable} lists no service "${name}"`);
  }
  return [...urls].map(([name, url]) => ({
    name,
    url: originOf(url, services.variable),
    descriptorFile: files.get(name),
  }));
}

function parsePairs(text: string, variable: string): Map<string, string> {
  const pairs = new Map<string, string>();
  for (const entry of parseList(text, ",")) {
    const at = entry.indexOf("=");
    const name = entry.slice(0, Math.max(at, 0));
    if (!isServiceName(name)) {
      throw new Error(`${variable}: "${entry}" does not begin with a name of a-z, 0-9 and -, at most 32, and "="`);
    }
    if (pairs.has(name)) throw new Error(`${variable}: "${name}" is listed twice`);
    pairs.set(name, entry.slice(at + 1));
  }
  return pairs;
}

function originOf(text: string, variable: string): string {
  const url = URL.parse(text);
  if (url === null || (url.pathname !== "/" && url.pathname !== "")) {
    throw new Error(`${variable}: "${text}" is not of the form http://host:port`);
  }
  if (url.protocol === "https:" || (url.protocol === "http:" && isLoopback(url.hostname))) return url.origin;
  throw new Error(`${variable}: "${text}" must be https, since only loopback may be cleartext`);
}
