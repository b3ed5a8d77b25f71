import { expect, test, vi } from "vitest";
import { createSpare } from "./spare.ts";

/** Connections that are made by hand. */
function connections() {
  const made: PromiseWithResolvers<string>[] = [];
  const closed: string[] = [];
  const spare = createSpare<string>({
    connect() {
      const one = Promise.withResolvers<string>();
      made.push(one);
      return one.promise;
    },
    close: (name) => void closed.push(name),
  });
  return { made, closed, spare };
}

const wanted = () => true;

test("a spare that is ready is reported, and taken by the next who needs a connection", async () => {
  const { made, closed, spare } = connections();
  const onReady = vi.fn();
  spare.prepare(wanted, onReady);
  spare.prepare(wanted, onReady);
  made[0]?.resolve("first");
  await vi.waitFor(() => expect(onReady).toHaveBeenCalledOnce());
  expect(await spare.take()).toBe("first");
  expect([made.length, closed]).toEqual([1, []]);
  void spare.take();
  expect(made).toHaveLength(2);
});

test("one that is not wanted any more when it is ready is closed", async () => {
  const { made, closed, spare } = connections();
  const onReady = vi.fn();
  spare.prepare(() => false, onReady);
  made[0]?.resolve("first");
  await vi.waitFor(() => expect(closed).toEqual(["first"]));
  expect(onReady).not.toHaveBeenCalled();
});

test("one that is taken while it is being made is its taker's, whatever was wanted", async () => {
  const { made, closed, spare } = connections();
  const onReady = vi.fn();
  spare.prepare(() => false, onReady);
  const taken = spare.take();
  made[0]?.resolve("first");
  expect(await taken).toBe("first");
  expect([onReady.mock.calls, closed]).toEqual([[], []]);
});

test("one that fails is forgotten, and the next is made anew", async () => {
  const { made, spare } = connections();
  spare.prepare(wanted, () => undefined);
  made[0]?.reject(new Error("refused"));
  await vi.waitFor(() => {
    spare.prepare(wanted, () => undefined);
    expect(made).toHaveLength(2);
  });
});

test("one that is discarded is closed as soon as it is made", async () => {
  const { made, closed, spare } = connections();
  spare.prepare(wanted, () => undefined);
  spare.discard();
  made[0]?.resolve("first");
  await vi.waitFor(() => expect(closed).toEqual(["first"]));
});
