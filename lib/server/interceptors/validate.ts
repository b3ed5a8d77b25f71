import type { DescMessage, DescMethod, MessageShape } from "@bufbuild/protobuf";
import type { Validator } from "@bufbuild/protovalidate";
import type { Interceptor } from "@connectrpc/connect";
import { invalidInput } from "../../fault/invalid-input.ts";
import { messageProblems } from "../../json/message.ts";
import { assertNothingStrange } from "../strange-fields.ts";

/**
 * Validates each request message by the rules of its schema (https://protovalidate.com), also each of a stream.
 *
 * @param isStrict whether an RPC refuses what this version does not know. Default: none does.
 */
export function validateInterceptor(
  current: () => Validator,
  isStrict: (method: DescMethod) => boolean = () => false,
): Interceptor {
  return (next) => (request) => {
    const validator = current();
    const { input } = request.method;
    const check = isStrict(request.method)
      ? (message: MessageShape<typeof input>): void => {
          assertNothingStrange(input, message);
          assertValid(validator, input, message);
        }
      : (message: MessageShape<typeof input>): void => assertValid(validator, input, message);
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
