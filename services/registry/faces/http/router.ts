import { once } from "node:events";
import { type DescMethod, getOption, type JsonValue } from "@bufbuild/protobuf";
import { access } from "../../../../gen/ts/reeve/options/v1/access_pb.ts";
import { type Principal, requireRole } from "../../../../lib/auth/principal.ts";
import type { Fallback, PlainRequest, PlainResponse } from "../../../../lib/server/plain-http.ts";

/** A path of plain HTTP. */
export type HttpRoute = {
  method: "GET" | "POST";
  /** Such as "/calls/{id}": a segment in braces is a parameter. */
  path: string;
  /** The RPC that it stands for: the same roles may use it. */
  rpc: DescMethod;
} & (
  | { answer(request: HttpRequest, response: PlainResponse): void | Promise<void> }
  /** Sent as they come. */
  | { events(request: HttpRequest): AsyncIterable<JsonValue> }
);

/** A request of a principal that may use the path. */
export interface HttpRequest {
  plain: PlainRequest;
  principal: Principal;
  /** The path's parameters, decoded, in their order. */
  parameters: readonly string[];
}

/** Serves the routes. A path that is known with another method is 405. */
export function createRouter(routes: readonly HttpRoute[]): Fallback {
  const known = routes.map((route) => ({
    route,
    pattern: patternOf(route.path),
    // Read once: it costs more than all the rest of the routing.
    roles: getOption(route.rpc, access).roles,
  }));
  return async (request, response) => {
    const matches = known.flatMap(({ route, roles, pattern }) => {
      const match = pattern.exec(request.path);
      return match === null ? [] : [{ route, roles, parameters: match.slice(1).map(decoded) }];
    });
    const found = matches.find(({ route }) => route.method === request.method);
    if (found !== undefined) {
      const principal = requireRole(request.principal, found.roles);
      await serve(found.route, { plain: request, principal, parameters: found.parameters }, response);
    } else if (matches.length > 0) refuseMethod(matches.map(({ route }) => route.method).join(", "), request, response);
    return matches.length > 0;
  };
}

async function serve(route: HttpRoute, request: HttpRequest, response: PlainResponse): Promise<void> {
  if ("events" in route) await sendEvents(route.events(request), request.plain.signal, response);
  else await route.answer(request, response);
}

/**
 * Sends server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html), no faster than they are read.
 * What the events throw before the first one is the answer; afterwards it ends the connection.
 */
async function sendEvents(
  events: AsyncIterable<JsonValue>,
  signal: AbortSignal,
  { raw }: PlainResponse,
): Promise<void> {
  for await (const event of events) {
    if (!raw.headersSent) raw.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-store" });
    if (!raw.write(`data: ${JSON.stringify(event)}\n\n`)) await once(raw, "drain", { signal });
  }
  raw.end();
}

function refuseMethod(allowed: string, request: PlainRequest, response: PlainResponse): void {
  response.raw.setHeader("allow", allowed);
  response.json(405, { code: "unimplemented", message: `${request.path.slice(0, 200)} takes ${allowed}` });
}

function patternOf(path: string): RegExp {
  return new RegExp(`^${path.replace(/\{\w+\}/g, "([^/]*)")}$`);
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}
