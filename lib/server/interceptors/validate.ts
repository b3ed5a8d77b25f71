import type { DescMessage, DescMethod, Message, MessageShape } from "@bufbuild/protobuf";
import type { Validator } from "@bufbuild/protovalidate";
import type { Interceptor } from "@connectrpc/connect";
import { invalidInput } from "../../fault/invalid-input.ts";
import { messageProblems } from "../../json/message.ts";
import { assertNothingStrange } from "../strange-fields.ts";

/** Throws INVALID_INPUT for a request that an RPC does not take. */
export type Check = (message: Message) => void;

/**
 * Validates requests of an RPC by the rules of their schema (https://protovalidate.com).
 *
 * @param isStrict whether an RPC refuses what this version does not know. Default: none does.
 */
export function requestChecks(
  current: () => Validator,
  isStrict: (method: DescMethod) => boolean = () => false,
): (method: DescMethod) => Check {
  return (method) => {
    const { input } = method;
    if (!isStrict(method)) return (message) => assertValid(current(), input, message);
    return (message) => {
      assertNothingStrange(input, message);
      assertValid(current(), input, message);
    };
  };
}

/** Checks each request message, also each of a stream. */
export function validateInterceptor(checkOf: (method: DescMethod) => Check): Interceptor {
  return (next) => (request) => {
    const check = checkOf(request.method);
    if (request.stream) return next({ ...request, message: checkStream(request.message, check) });
    check(request.message);
    return next(request);
  };
}

/** Throws INVALID_INPUT with one violation a field, named as in JSON. */
export function assertValid<Desc extends DescMessage>(
  validator: Validator,
  desc: Desc,
  message: MessageShape<Desc>,
): void {
  const problems = messageProblems(validator, desc, message);
  if (problems.length > 0) throw invalidInput(problems);
}

function checkStream<M>(messages: AsyncIterable<M>, assertGood: (message: M) => void): AsyncIterable<M> {
  return {
    [Symbol.asyncIterator]() {
      const it = messages[Symbol.asyncIterator]();
      const check = (result: IteratorResult<M>): IteratorResult<M> => {
        if (result.done !== true) assertGood(result.value);
        return result;
      };
      return {
        next: () => it.next().then(check),
        throw: (error: unknown) => it.throw?.(error) ?? Promise.reject(error),
        return: (value?: unknown) => it.return?.(value) ?? Promise.resolve({ done: true, value: undefined }),
      };
    },
  };
}
