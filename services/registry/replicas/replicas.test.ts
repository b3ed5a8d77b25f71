import { afterEach, expect, test, vi } from "vitest";
import { openNatsPost, type Post } from "../../../lib/events/nats-post.ts";
import { createLogger } from "../../../lib/log/log.ts";
import { eventually } from "../../../testkit/eventually.ts";
import { startNatsServer } from "../../../testkit/nats-server.ts";
import { busKeysOf } from "./bus-key.ts";
import type { Membership } from "./membership.ts";
import { joinBus } from "./replicas.ts";

const parts = new AsyncDisposableStack();
afterEach(() => parts.disposeAsync());

const logger = createLogger({ service: "test", level: "silent" });
const keys = busKeysOf(new Uint8Array(32).fill(7));

function join(self: string, post: Post, onNudge: () => void) {
  const membership: Membership = {
    self,
    isAlive: () => true,
    isGone: () => false,
    others: () => [],
    onChange: () => () => undefined,
    look: async () => undefined,
    close: async () => undefined,
  };
  const none = () => undefined;
  return joinBus({ membership, post, keys, logger, now: Date.now, shared: none, led: none, onNudge });
}

test("a replica that leaves tells the others to look, although its connection is closed at once", async () => {
  const nats = parts.adopt(await startNatsServer(), (one) => one.close());
  const open = () => openNatsPost({ servers: [nats.url] });
  const [staying, leaving] = [await open(), await open()];
  parts.defer(() => staying.close());
  const nudged = vi.fn();
  const other = join("rep-a", staying, nudged);
  parts.defer(() => other.close());
  await staying.flush();
  const one = join("rep-b", leaving, () => undefined);
  one.nudge();
  one.close();
  await leaving.close();
  await eventually(() => expect(nudged).toHaveBeenCalledOnce());
});
