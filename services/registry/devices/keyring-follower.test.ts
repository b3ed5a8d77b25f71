import { expect, it, vi } from "vitest";
import { signKeyring } from "../../../lib/sign/keyring.ts";
import { generateSigningKey } from "../../../lib/sign/keys.ts";
import { GRANT_TYPE } from "../../../lib/sign/payload-types.ts";
import { eventually } from "../../../testkit/eventually.ts";
import { followKeyring } from "./keyring-follower.ts";

const key = generateSigningKey();
const chain = [1n, 2n, 3n].map((version) => signKeyring(key, { version, statementType: GRANT_TYPE, keys: [key] }));

/** Policy, which answers as a test says. */
function policy() {
  const asked: { known: bigint; answer: PromiseWithResolvers<readonly (typeof chain)[number][]> }[] = [];
  return {
    asked,
    awaitKeyring(known: bigint, signal: AbortSignal) {
      const answer = Promise.withResolvers<readonly (typeof chain)[number][]>();
      signal.addEventListener("abort", () => answer.reject(signal.reason), { once: true });
      asked.push({ known, answer });
      return answer.promise;
    },
  };
}

it("knows nothing until policy has said something, then all that brings a device up to date, in order", async () => {
  const { asked, awaitKeyring } = policy();
  const follower = followKeyring({ awaitKeyring, onError: expect.fail });
  const changed = vi.fn();
  follower.onChange(changed);
  expect([follower.version, follower.trustFor(0n)]).toEqual([0n, []]);
  asked[0]?.answer.resolve(chain.slice(0, 2));
  await eventually(() => expect(changed).toHaveBeenCalledOnce());
  expect(follower.version).toBe(2n);
  const commands = follower.trustFor(0n).map(({ command }) => command);
  expect(commands.map((command) => command.case === "trustKeyring" && command.value.keyring)).toEqual(
    chain.slice(0, 2),
  );
  expect(follower.trustFor(1n)).toHaveLength(1);
  expect(follower.trustFor(2n)).toEqual([]);
  await eventually(() => expect(asked.map(({ known }) => known)).toEqual([0n, 2n]));
  await follower.close();
});

it("asks again after a failure, and reports it", async () => {
  const { asked, awaitKeyring } = policy();
  const onError = vi.fn();
  const follower = followKeyring({ awaitKeyring, onError });
  const askedAgain = (times: number) => eventually(() => expect(asked).toHaveLength(times));
  asked[0]?.answer.reject(new Error("offline"));
  await askedAgain(2);
  expect(onError).toHaveBeenCalledOnce();
  asked[1]?.answer.resolve([]);
  await askedAgain(3);
  expect(onError).toHaveBeenCalledTimes(2);
  asked[2]?.answer.resolve(chain);
  await eventually(() => expect(follower.version).toBe(3n));
  await follower.close();
});

it("stops asking when it is closed", async () => {
  const { asked, awaitKeyring } = policy();
  const follower = followKeyring({ awaitKeyring, onError: expect.fail });
  await follower.close();
  expect(asked).toHaveLength(1);
});
