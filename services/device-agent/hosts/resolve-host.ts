import { type LookupAddress, promises } from "node:dns";
import { isIP } from "node:net";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { fault } from "../../../lib/fault/fault.ts";
import { type HostList, plainHost } from "../../../lib/hosts/host-list.ts";

/** Where a tool is about to connect. */
export interface Target {
  /** The field of the arguments that says so. */
  field: string;
  host: string;
  port: number;
  /** The port of entries of the list that name none. */
  defaultPort: number;
}

/** The addresses of a name. */
export type Resolve = (host: string) => Promise<LookupAddress[]>;

const bySystem: Resolve = (host) => promises.lookup(host, { all: true, verbatim: true });

/**
 * The addresses that a target may be connected to: connect to one of these and look nothing up again, since a name may stand for
 * another address the next time. Faults: HOST_NOT_GRANTED{field,host} where the owner does not let tools connect there, or one
 * of its addresses is not public and was not named; TARGET_NOT_FOUND{field} where the name has none.
 */
export async function resolveHost(hosts: HostList, target: Target, resolve = bySystem): Promise<LookupAddress[]> {
  const { field, port, defaultPort } = target;
  const host = plainHost(target.host);
  if (!hosts.grants(host, port, defaultPort))
    throw notGranted(target, "is not one of the hosts that the device's owner named (REEVE_DEVICE_HOSTS)");
  const family = isIP(host);
  const addresses = family === 0 ? await lookUp(host, field, resolve) : [{ address: host, family }];
  const refused = addresses.find(({ address }) => !hosts.mayConnect(address));
  if (refused !== undefined)
    throw notGranted(
      target,
      `has the address ${refused.address}, which is not public and which the owner did not name`,
    );
  return addresses;
}

async function lookUp(host: string, field: string, resolve: Resolve): Promise<LookupAddress[]> {
  const found = await resolve(host).catch((cause: unknown) => {
    throw fault(ErrorReason.TARGET_NOT_FOUND, { field }, { message: `the host ${host} cannot be resolved`, cause });
  });
  if (found.length > 0) return found;
  throw fault(ErrorReason.TARGET_NOT_FOUND, { field }, { message: `the host ${host} has no address` });
}

function notGranted({ field, host, port }: Target, why: string): Error {
  const message = `${host}:${port} ${why}`;
  return fault(ErrorReason.HOST_NOT_GRANTED, { field, host: host.slice(0, 253) }, { message });
}
