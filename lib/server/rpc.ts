import { create, createRegistry, type DescMethod, type DescService } from "@bufbuild/protobuf";
import { createValidator, type Validator } from "@bufbuild/protovalidate";
import {
  type ConnectRouter,
  type ConnectRouterOptions,
  createMethodImplSpec,
  createServiceImplSpec,
  type MethodImplSpec,
} from "@connectrpc/connect";
import { validateUniversalHandlerOptions } from "@connectrpc/connect/protocol";
import { Role } from "../../gen/ts/reeve/options/v1/access_pb.ts";
import { decodeStrictJson } from "../json/strict-json.ts";
import { rememberAccess } from "./access.ts";
import { createDirect, type DirectRpc } from "./direct.ts";
import { createGate, type GateOptions } from "./gate.ts";
import { outcomeInterceptor, runToEnd } from "./interceptors/outcome.ts";
import { requestChecks, validateInterceptor } from "./interceptors/validate.ts";
import type { Limits } from "./limits.ts";
import { createPublicCalls } from "./public-calls.ts";

/** What every RPC goes through, whether it came over a socket or from the same process. */
export interface RpcOptions extends Omit<GateOptions, "publicCalls"> {
  limits: Limits;
  /** Aborted with the error that running handlers are to end with. */
  shutdownSignal: AbortSignal;
}

/**
 * Those whose requests are refused where they say what this version does not know. Services and devices of a newer version
 * talk to older ones while they are replaced, and make do with what those understand.
 */
const STRICT = new Set<Role>([Role.OPERATOR, Role.AGENT, Role.AUDITOR, Role.WORKFLOW]);

/** Routes and the options of the router that they must be registered with. */
export interface PreparedRoutes {
  routes: (router: ConnectRouter) => void;
  router: ConnectRouterOptions;
  /** The unary RPCs of the routes, once they are registered, for an adapter that can serve them without connect's handlers. */
  direct: ReadonlyMap<DescMethod, DirectRpc>;
}

/**
 * Puts the one order around routes, outermost first: request id, log, authentication and access (the gate, before the body
 * is read), codec with the strict JSON check, error, validation, handler. Registering the prepared routes compiles the
 * rules of all requests, because the first use of a rule is slow.
 */
export function prepareRoutes(routes: (router: ConnectRouter) => void, options: RpcOptions): PreparedRoutes {
  const { limits, observer, shutdownSignal } = options;
  let validator = createValidator();
  const json = { maxBytes: limits.readMaxBytes, maxDepth: limits.maxJsonDepth, maxKeys: limits.maxJsonKeys };
  // connect decodes the bytes of every JSON message, unary or streamed, in each protocol, with this decoder.
  const textDecoder = { decode: (bytes?: Uint8Array) => decodeStrictJson(bytes ?? new Uint8Array(), json) };
  const jsonOptions = { ignoreUnknownFields: false, textDecoder };
  const accessOf = rememberAccess(options.access);
  const isStrict = (method: DescMethod) => accessOf(method).roles.some((role) => STRICT.has(role));
  const checkOf = requestChecks(() => validator, isStrict);
  const requestGate = createGate({ ...options, publicCalls: createPublicCalls(limits) });
  const router: ConnectRouterOptions = {
    // Messages are small or already compressed, and inside one host or cluster compression costs more than it saves.
    acceptCompression: [],
    readMaxBytes: limits.readMaxBytes,
    maxTimeoutMs: limits.maxTimeoutMs,
    requestGate,
    interceptors: [outcomeInterceptor(observer), validateInterceptor(checkOf)],
    jsonOptions,
    shutdownSignal,
  };
  const direct = new Map<DescMethod, DirectRpc>();
  const directRpc = createDirect({
    gate: requestGate,
    runToEnd: (call, signal, run) => runToEnd(call, observer, signal, run),
    checkOf,
    connect: validateUniversalHandlerOptions(router),
    shutdownSignal,
  });
  const onSpec = (spec: MethodImplSpec): void => {
    const served = directRpc(spec);
    if (served !== undefined) direct.set(spec.method, served);
  };
  return {
    router,
    direct,
    routes(target) {
      routes(watchSpecs(target, onSpec));
      validator = warmValidator(servicesOf(target));
    },
  };
}

/** A router that says what is registered with it, where that has no options of its own. */
function watchSpecs(router: ConnectRouter, onSpec: (spec: MethodImplSpec) => void): ConnectRouter {
  const watched: ConnectRouter = {
    handlers: router.handlers,
    service(service, implementation, more) {
      router.service(service, implementation, more);
      if (more === undefined)
        for (const spec of Object.values(createServiceImplSpec(service, implementation).methods)) onSpec(spec);
      return watched;
    },
    rpc(method, implementation, more) {
      router.rpc(method, implementation, more);
      if (more === undefined) onSpec(createMethodImplSpec(method, implementation));
      return watched;
    },
  };
  return watched;
}

/** Each service of a router once, in the order of registration. */
export function servicesOf(router: ConnectRouter): DescService[] {
  return [...new Set(router.handlers.map((handler) => handler.service))];
}

function warmValidator(services: readonly DescService[]): Validator {
  const validator = createValidator({ registry: createRegistry(...services.map((service) => service.file)) });
  const inputs = new Set(services.flatMap((service) => service.methods.map((method) => method.input)));
  for (const input of inputs) validator.validate(input, create(input));
  return validator;
}
