import type { IncomingHttpHeaders } from "node:http";
import type { DescMethod } from "@bufbuild/protobuf";
import type { ContextValues, HandlerContext } from "@connectrpc/connect";
import { contentTypeUnaryJson, contentTypeUnaryProto } from "@connectrpc/connect/protocol-connect";
import type { NodeRequest } from "./adapter.ts";
import type { Controlled } from "./gate.ts";
import { REQUEST_ID_HEADER } from "./request-id.ts";

/** A unary RPC that is served from node's own request: what the gate and the handler see of it. */
export interface DirectContext {
  readonly entrance: Controlled;
  readonly handler: HandlerContext;
  readonly controller: AbortController;
  readonly contentType: string;
  readonly isBinary: boolean;
  /** The one that the gate gave it. */
  requestId(): string;
  /** Whether the handler asked for the headers or trailers of the answer, and may have changed them. */
  isTouched(): boolean;
}

/**
 * Makes headers and the URL when they are asked for, which few handlers do.
 *
 * @param timeoutMs from now to the deadline; Infinity without a deadline.
 */
export function createDirectContext(
  method: DescMethod,
  request: NodeRequest,
  values: ContextValues,
  timeoutMs: number,
): DirectContext {
  const { headers } = request;
  const contentType = headers["content-type"] === contentTypeUnaryProto ? contentTypeUnaryProto : contentTypeUnaryJson;
  const controller = new AbortController();
  const { signal } = controller;
  const deadline = timeoutMs === Infinity ? undefined : Date.now() + timeoutMs;
  let requestId = "";
  let requestHeader: Headers | undefined;
  let responseHeader: Headers | undefined;
  let responseTrailer: Headers | undefined;
  const common = { method, protocolName: "connect", requestMethod: "POST", signal, values };
  return {
    controller,
    isBinary: contentType === contentTypeUnaryProto,
    contentType,
    requestId: () => requestId,
    isTouched: () => responseHeader !== undefined || responseTrailer !== undefined,
    entrance: {
      ...common,
      url: request.url ?? "",
      requestHeader: { get: (name) => singleHeader(headers[name]) ?? null },
      responseHeader: {
        set: (_name, value) => {
          requestId = value;
        },
      },
      abort: (reason) => controller.abort(reason),
    },
    handler: {
      ...common,
      service: method.parent,
      timeoutMs: () => (deadline === undefined ? undefined : deadline - Date.now()),
      get url() {
        return urlOf(request);
      },
      get requestHeader() {
        requestHeader ??= webHeaders(headers);
        return requestHeader;
      },
      get responseHeader() {
        responseHeader ??= new Headers({ "content-type": contentType, [REQUEST_ID_HEADER]: requestId });
        return responseHeader;
      },
      get responseTrailer() {
        responseTrailer ??= new Headers();
        return responseTrailer;
      },
    },
  };
}

function urlOf(request: NodeRequest): string {
  const scheme = "encrypted" in request.socket && request.socket.encrypted === true ? "https" : "http";
  const authority = "authority" in request ? request.authority : request.headers.host;
  return new URL(request.url ?? "", `${scheme}://${authority ?? ""}`).toString();
}

function singleHeader(value: string | string[] | undefined): string | undefined {
  return typeof value === "object" ? value.join(", ") : value;
}

function webHeaders(headers: IncomingHttpHeaders): Headers {
  const web = new Headers();
  for (const [name, value] of Object.entries(headers)) {
    if (!name.startsWith(":") && value !== undefined) web.set(name, singleHeader(value) ?? "");
  }
  return web;
}
