import { isLoopback } from "../config/loopback.ts";
import { invalidField } from "../fault/invalid-input.ts";
import type { NodeHandler, NodeRequest } from "./adapter.ts";
import { absorbErrors } from "./connection-errors.ts";
import { faultToJson } from "./fault-json.ts";
import { sendJson } from "./plain-http.ts";

/**
 * Refuses what comes to a loopback port under a name of somewhere else, and what names no host that can be read. A page in a
 * browser can point a name of its own at 127.0.0.1 and read what needs no token (DNS rebinding); it cannot choose the Host
 * header. A request with a token is from no such page. Other ports have many names, and with TLS a page would need a
 * certificate of that name: there is no check then.
 *
 * @param host where the port listens in cleartext; undefined with TLS and for a Unix socket.
 */
export function onlyOwnHost(handler: NodeHandler, host: string | undefined): NodeHandler {
  const isLocal = host !== undefined && isLoopback(host);
  return (request, response) => {
    const name = hostOf(request);
    const { authorization } = request.headers;
    const isOwn = !isLocal || authorization !== undefined || name === "" || isLoopback(name ?? "");
    if (name !== undefined && isOwn) return handler(request, response);
    absorbErrors(request);
    absorbErrors(response);
    const message =
      "this port answers as localhost only, and the Host header says something else: ask for localhost, or send a token";
    const rule = isLocal ? "loopback" : "host";
    const { status, body } = faultToJson(invalidField("host", rule, message, { text: message }));
    sendJson(response, status, body);
  };
}

/** The last one that was looked at: most requests of a server name the same. */
let known: { readonly authority: string; readonly name: string | undefined } = { authority: "", name: "" };

/** The host that a request names, without its port; empty where it names none, undefined where that is no host. */
export function hostOf(request: NodeRequest): string | undefined {
  const authority = ("authority" in request ? request.authority : request.headers.host) ?? "";
  if (authority !== known.authority)
    known = { authority, name: authority === "" ? "" : URL.parse(`http://${authority}`)?.hostname };
  return known.name;
}
