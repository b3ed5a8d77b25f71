import type { ServerResponse } from "node:http";
import { create, type DescMethod } from "@bufbuild/protobuf";
import { Code, ConnectError, type ContextValues, type MethodImplSpec } from "@connectrpc/connect";
import {
  createAsyncIterable,
  createMethodSerializationLookup,
  mergeNonProtocolHeaders,
  uResponseOk,
  type validateUniversalHandlerOptions,
} from "@connectrpc/connect/protocol";
import {
  codeToHttpStatus,
  contentTypeUnaryJson,
  contentTypeUnaryProto,
  errorToJsonBytes,
  trailerMux,
} from "@connectrpc/connect/protocol-connect";
import { universalResponseToNodeResponse } from "@connectrpc/connect-node";
import { type NodeRequest, type NodeResponse, onClose } from "./adapter.ts";
import { LONGEST_MS } from "./bound-timeouts.ts";
import { type Call, callOf, followCaller, keepBody } from "./call.ts";
import { departure } from "./departure.ts";
import { createDirectContext, type DirectContext } from "./direct-context.ts";
import type { Gate } from "./gate.ts";
import type { Check } from "./interceptors/validate.ts";
import { hostOf } from "./own-host.ts";
import { readWhole } from "./read-body.ts";
import { REQUEST_ID_HEADER } from "./request-id.ts";
import { type Running, runningUntil } from "./running.ts";

/** What is around each RPC: the same that connect runs as gate and interceptors. */
export interface DirectOptions {
  gate: Gate;
  /** Runs an RPC that was let in to its end. */
  runToEnd: <T>(call: Call, signal: AbortSignal, run: () => Promise<T>) => Promise<T>;
  checkOf: (method: DescMethod) => Check;
  /** As connect's own handlers have them. */
  connect: ReturnType<typeof validateUniversalHandlerOptions>;
  /** Aborted with the error that running handlers are to end with. */
  shutdownSignal: AbortSignal;
}

/** Serves a unary RPC of the Connect protocol. */
export interface DirectRpc {
  /** False: the request says something that is left to connect's own handler. */
  takes(request: NodeRequest): boolean;
  serve(request: NodeRequest, response: NodeResponse, values: ContextValues): Promise<void>;
}

/** What an answer is written from. No `header`: it is the one that every answer has. */
interface Answer {
  readonly status: number;
  readonly header: Headers | undefined;
  readonly body: Uint8Array;
}

/**
 * Serves unary RPCs as connect's own handler does, byte for byte, from node's own objects. Connect's makes three abort
 * controllers, four sets of headers, a URL and several async iterators for each call, which cost more than the gate and the
 * codec together.
 */
export function createDirect(options: DirectOptions): (spec: MethodImplSpec) => DirectRpc | undefined {
  const running = runningUntil(options.shutdownSignal);
  return (spec) => (spec.kind === "unary" ? directRpc(spec, options, running) : undefined);
}

function directRpc(
  spec: MethodImplSpec & { kind: "unary" },
  { gate, runToEnd, checkOf, connect }: DirectOptions,
  running: Running,
): DirectRpc {
  const { method } = spec;
  const { maxTimeoutMs } = connect;
  const codecs = createMethodSerializationLookup(method, connect.binaryOptions, connect.jsonOptions, connect);
  const check = checkOf(method);
  const path = `/${method.parent.typeName}/${method.name}`;

  const run = async (context: DirectContext, request: NodeRequest, pieces: Uint8Array[]): Promise<Uint8Array> => {
    const { handler, isBinary } = context;
    // Nothing of the body is read before the gate has let the caller in.
    await gate(context.entrance);
    const bytes = await readWhole(request, connect.readMaxBytes, () => messageTooLarge(connect.readMaxBytes), pieces);
    const input = codecs.getI(isBinary).parse(bytes);
    const output = await runToEnd(callOf(handler.values), handler.signal, async () => {
      check(input);
      return create(method.output, await spec.impl(input, handler));
    });
    return codecs.getO(isBinary).serialize(output);
  };

  return {
    takes: (request) => request.url === path && isPlain(request) && timeoutOf(request, maxTimeoutMs) !== undefined,
    async serve(request, response, values) {
      const timeoutMs = timeoutOf(request, maxTimeoutMs) ?? Infinity;
      const context = createDirectContext(method, request, values, timeoutMs);
      const { controller, entrance } = context;
      const timer = timeoutMs === Infinity ? undefined : setTimeout(() => controller.abort(timedOut()), timeoutMs);
      const pieces: Uint8Array[] = [];
      const left = { aborted: false, reason: undefined as unknown };
      if (!context.isBinary) keepBody(values, pieces);
      followCaller(values, left);
      running.add(controller);
      onClose(response, () => {
        if (running.has(controller)) leave(left, controller);
      });
      let answer: Answer;
      try {
        const body = await run(context, request, pieces);
        answer = { status: uResponseOk.status, header: headerOf(context), body };
      } catch (cause: unknown) {
        entrance.abort(cause);
        answer = failure(cause, context, connect.jsonOptions);
      } finally {
        entrance.abort();
        clearTimeout(timer);
        running.delete(controller);
      }
      if (left.aborted) throw departure(left.reason);
      await send(response, answer, context);
    },
  };
}

/** A POST in one of the two codecs, without compression. */
function isPlain(request: NodeRequest): boolean {
  const { method, headers } = request;
  const type = headers["content-type"];
  return (
    method === "POST" &&
    (type === contentTypeUnaryProto || type === contentTypeUnaryJson) &&
    headers["content-encoding"] === undefined &&
    (hostOf(request) ?? "") !== ""
  );
}

/** How long a request may take; Infinity where it does not say. Undefined for what has to be refused, or is over already. */
function timeoutOf({ headers }: NodeRequest, maxTimeoutMs: number): number | undefined {
  const text = headers["connect-timeout-ms"];
  if (text === undefined) return Infinity;
  const ms = typeof text === "string" && /^\d{1,10}$/.test(text) ? Number(text) : 0;
  return ms > 0 && ms <= Math.min(maxTimeoutMs, LONGEST_MS) ? ms : undefined;
}

/** In the words of connect. */
function timedOut(): ConnectError {
  return new ConnectError("the operation timed out", Code.DeadlineExceeded);
}

/** In the words of connect, which the gate makes INPUT_TOO_LARGE of. */
function messageTooLarge(maxBytes: number): ConnectError {
  return new ConnectError(`message size is larger than configured readMaxBytes ${maxBytes}`, Code.ResourceExhausted);
}

function leave(left: { aborted: boolean; reason: unknown }, controller: AbortController): void {
  left.reason = new DOMException("This operation was aborted", "AbortError");
  left.aborted = true;
  controller.abort(left.reason);
}

/** Undefined where the handler set none. */
function headerOf({ handler, isTouched }: DirectContext): Headers | undefined {
  return isTouched() ? trailerMux(handler.responseHeader, handler.responseTrailer) : undefined;
}

/** As connect writes an error; the gate has typed it by now. */
function failure(cause: unknown, context: DirectContext, jsonOptions: DirectOptions["connect"]["jsonOptions"]): Answer {
  const error =
    cause instanceof ConnectError
      ? cause
      : new ConnectError("internal error", Code.Internal, undefined, undefined, cause);
  const { responseHeader, responseTrailer } = context.handler;
  responseHeader.set("content-type", contentTypeUnaryJson);
  // What came over the wire from another service is passed on without its headers.
  if (!error.isWireError) mergeNonProtocolHeaders(responseHeader, error.metadata);
  const header = trailerMux(responseHeader, responseTrailer);
  return { status: codeToHttpStatus(error.code), header, body: errorToJsonBytes(error, jsonOptions) };
}

async function send(response: NodeResponse, { status, header, body }: Answer, context: DirectContext): Promise<void> {
  const length = String(body.byteLength);
  if (header !== undefined) {
    header.set("content-length", length);
    return universalResponseToNodeResponse({ status, header, body: createAsyncIterable([body]) }, response);
  }
  (response as ServerResponse).writeHead(status, {
    "content-length": length,
    "content-type": context.contentType,
    [REQUEST_ID_HEADER]: context.requestId(),
  });
  response.end(body);
}
