import { create, createRegistry, type DescMethod, type DescService } from "@bufbuild/protobuf";
import { createValidator, type Validator } from "@bufbuild/protovalidate";
import type { ConnectRouter, ConnectRouterOptions } from "@connectrpc/connect";
import { Role } from "../../gen/ts/reeve/options/v1/access_pb.ts";
import { decodeStrictJson } from "../json/strict-json.ts";
import { rememberAccess } from "./access.ts";
import { createGate, type GateOptions } from "./gate.ts";
import { outcomeInterceptor } from "./interceptors/outcome.ts";
import { validateInterceptor } from "./interceptors/validate.ts";
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
const STRICT = new Set<Role>([Role.OPERATOR, Role.AGENT, Role.AUDITOR]);

/** Routes and the options of the router that they must be registered with. */
export interface PreparedRoutes {
  routes: (router: ConnectRouter) => void;
  router: ConnectRouterOptions;
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
  const router: ConnectRouterOptions = {
    // Messages are small or already compressed, and inside one host or cluster compression costs more than it saves.
    acceptCompression: [],
    readMaxBytes: limits.readMaxBytes,
    maxTimeoutMs: limits.maxTimeoutMs,
    requestGate: createGate({ ...options, publicCalls: createPublicCalls(limits) }),
    interceptors: [outcomeInterceptor(observer), validateInterceptor(() => validator, isStrict)],
    jsonOptions,
    shutdownSignal,
  };
  return {
    router,
    routes(target) {
      routes(target);
      validator = warmValidator(servicesOf(target));
    },
  };
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
