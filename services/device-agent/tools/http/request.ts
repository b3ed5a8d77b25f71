import { ErrorReason } from "../../../../gen/ts/reeve/common/v1/error_pb.ts";
import { fault } from "../../../../lib/fault/fault.ts";
import { invalidInput } from "../../../../lib/fault/invalid-input.ts";
import { secretsIn } from "../../../../lib/secrets/handle.ts";
import type { ToolContext } from "../tool.ts";
import { isEncrypted } from "./send.ts";

/** Headers that say how the request is carried, which is not the caller's to say. */
const CARRIED = /^(?:host|connection|content-length|transfer-encoding|te|trailer|upgrade|expect|keep-alive|proxy-.*)$/;

/**
 * The address in an argument. Fault: INVALID_INPUT for anything else, where it has a user name or password, or holds a handle: addresses are
 * shown and written down wherever a call is.
 */
export function parseUrl(text: string, field: string): URL {
  const url = URL.parse(text);
  const problem = (rule: string, message: string) => invalidInput([{ field, rule, message }]);
  if (url === null || !/^https?:$/.test(url.protocol)) throw problem("url", "is no http or https address");
  if (url.username !== "" || url.password !== "")
    throw problem("credentials", "has a user name or password: use a header with a secret of the device");
  // The parser has percent-encoded the braces by now.
  if (secretsIn(text).length > 0) throw problem("secret", "names a secret: use a header");
  url.hash = "";
  return url;
}

/** The headers as they are sent, with secrets. Faults: INVALID_INPUT for one that is not the caller's to set; SECRET_REFUSED. */
export function headersFor(
  url: URL,
  headers: Readonly<Record<string, string>>,
  { secrets }: Pick<ToolContext, "secrets">,
): Record<string, string> {
  const use = { field: "headers", host: url.hostname, isEncrypted: isEncrypted(url) };
  const sent = Object.entries(headers).map(([given, value]): [string, string] => {
    const name = given.toLowerCase();
    if (CARRIED.test(name))
      throw invalidInput([{ field: "headers", rule: "header", message: `${name} is set by the device itself` }]);
    return [name, oneLine(secrets.resolve(value, use))];
  });
  return Object.fromEntries(sent);
}

/** A secret with a line break in it would make headers of its own. */
function oneLine(value: string): string {
  if (!/[^\t\x20-\x7e\x80-\xff]/.test(value)) return value;
  const message = "a header has a character that headers cannot have, or a secret with one";
  throw fault(ErrorReason.SECRET_REFUSED, { field: "headers" }, { message });
}

/** A body as a tool returns it: as text where it is UTF-8, else as bytes; without the secrets that the call has used. */
export function bodyOf(body: Buffer, truncated: boolean, { secrets }: Pick<ToolContext, "secrets">) {
  const own = secrets.maskBytes(body);
  const text = textIn(own, truncated);
  return text === undefined ? { data: new Uint8Array(own) } : { text };
}

/** Undefined for what is not UTF-8. A cut may have left the first bytes of a character at the end. */
function textIn(bytes: Buffer, truncated: boolean): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes, { stream: truncated });
  } catch {
    return undefined;
  }
}
