import type { JsonObject } from "@bufbuild/protobuf";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { fault } from "../../../lib/fault/fault.ts";
import { plainHost } from "../../../lib/hosts/host-list.ts";
import { SECRET_NAME, secretsIn, withSecrets } from "../../../lib/secrets/handle.ts";
import { type Mask, maskOf } from "../../../lib/secrets/mask.ts";
import type { SecretStore } from "../../../lib/secrets/store.ts";

/** Where a secret is about to be sent. */
export interface SecretUse {
  /** The field of the arguments that has the handle. */
  field: string;
  host: string;
  /** Whether only that host can read what is sent. */
  isEncrypted: boolean;
}

/** The secrets of one call: what it may resolve, and what of it has to be masked. */
export interface CallSecrets {
  /**
   * A text with its handles "${secret:NAME}" resolved, for sending and for nothing else. Faults: SECRET_REFUSED{field,secret} where
   * there is no such secret, where it is not for that host, and where others could read it.
   */
  resolve(text: string, use: SecretUse): string;
  /** Whether a secret was resolved. */
  readonly isUsed: boolean;
  /** What a text of this call says without what was resolved in it. */
  mask(text: string): string;
  /** The same for an output. */
  maskOutput(output: JsonObject): JsonObject;
  /** The same for bytes that came back, of which there may be more. */
  maskBytes(bytes: Buffer): Buffer;
}

/** The secrets that a call of a device may resolve. */
export function secretsOfCall(store: Pick<SecretStore, "read">): CallSecrets {
  const resolved = new Map<string, string>();
  let mask: Mask | undefined;
  const open = (name: string, use: SecretUse): string => {
    const secret = SECRET_NAME.test(name) ? store.read(name) : undefined;
    const refused = (why: string) =>
      fault(ErrorReason.SECRET_REFUSED, { field: use.field, secret: name.slice(0, 64) }, { message: why });
    if (secret === undefined) throw refused("this device keeps no secret of that name: `reeve secret set` adds one");
    if (!secret.hosts.includes(plainHost(use.host)))
      throw refused(`the secret ${name} may be sent to ${secret.hosts.join(", ")} only`);
    if (!use.isEncrypted) throw refused(`the secret ${name} is not sent where others can read it: use https`);
    resolved.set(name, secret.value);
    mask = maskOf([...resolved.values()]);
    return secret.value;
  };
  return {
    resolve: (text, use) => (secretsIn(text).length === 0 ? text : withSecrets(text, (name) => open(name, use))),
    get isUsed() {
      return mask !== undefined;
    },
    mask: (text) => mask?.text(text) ?? text,
    maskOutput: (output) => mask?.output(output) ?? output,
    maskBytes: (bytes) => mask?.bytes(bytes) ?? bytes,
  };
}
