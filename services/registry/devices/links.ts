import type { DeviceHello } from "../../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import { createDeviceLink, type DeviceLink } from "./device-link.ts";
import type { TrustedKeys } from "./fleet-options.ts";
import { createRoute, type Way } from "./route.ts";

/** How a device is linked to this very process: it attached, or it was dialed. */
export type Here = "attached" | "dialed";

/** The links of this replica, by the devices' names. One is made when it is first wanted. */
export interface Links {
  /** The device's link. */
  link(name: string): DeviceLink;
  /** The link, where there is one and the device is linked to this very process. */
  here(name: string): { link: DeviceLink; how: Here } | undefined;
  /** Ends what runs on a device that is shut out; see DeviceLink. Resolves at once where there is no link. */
  shutOut(name: string): Promise<void>;
  /** Another way may be the best now. */
  reroute(name: string): void;
  /** Closes a link for good: its device is none any more, or nobody uses it. */
  drop(name: string): void;
  /** How many devices are linked to this very process. */
  readonly hereCount: number;
  close(): Promise<void>;
}

/** What links rest on. */
export interface LinksOptions {
  /** The best way to a device now. Ways to a stream of this very process have the keys "attached" and "dialed". */
  choose(name: string): Way | undefined;
  /** A device shows itself. False where it is not to be trusted; rejects where that cannot be told now. */
  onHello(name: string, hello: DeviceHello, how: Here | undefined): boolean | Promise<boolean>;
  /** A device that was linked to this very process is so no more. */
  onGone(name: string, how: Here): void;
  /** More about why a device is not linked. */
  whyOffline(name: string): string | undefined;
  /** Whether a link is to be held even where nobody uses it. */
  isKept(name: string): boolean;
  keys: TrustedKeys | undefined;
}

/** A link that nobody has used for so long is closed, in milliseconds. */
const IDLE_MS = 60_000;

interface Held {
  link: DeviceLink;
  how: Here | undefined;
  /** The version of the keys for grants that the device was told last, or said that it has. */
  keys: bigint;
  usedMs: number;
  reroute(): void;
}

/** No links yet. */
export function createLinks(options: LinksOptions): Links {
  const { keys } = options;
  const held = new Map<string, Held>();

  const hold = (name: string): Held => {
    const route = createRoute(() => options.choose(name));
    const link = createDeviceLink({
      opener: route.opener,
      maxBackoffMs: 0,
      async onHello(hello) {
        const key = route.way?.key;
        const how = key === "attached" || key === "dialed" ? key : undefined;
        if (!(await options.onHello(name, hello, how))) return false;
        one.how = how;
        one.keys = hello.keyringVersion;
        return true;
      },
      greeting: () => (one.how === undefined ? [] : newKeys(one)),
      onDown() {
        const { how } = one;
        one.how = undefined;
        if (how !== undefined) options.onGone(name, how);
      },
      whyOffline: () => options.whyOffline(name),
    });
    const one: Held = { link, how: undefined, keys: 0n, usedMs: performance.now(), reroute: route.update };
    held.set(name, one);
    return one;
  };
  const newKeys = (one: Held) => {
    if (keys === undefined || keys.version <= one.keys) return [];
    const commands = keys.trustFor(one.keys);
    one.keys = keys.version;
    return commands;
  };
  const stopKeys = keys?.onChange(() => {
    for (const one of held.values()) {
      if (one.how !== undefined) for (const command of newKeys(one)) one.link.tell(command);
    }
  });
  const drop = (name: string): void => {
    const one = held.get(name);
    held.delete(name);
    void one?.link.abandon();
  };
  const timer = setInterval(() => {
    const old = performance.now() - IDLE_MS;
    for (const [name, one] of held) {
      const used = one.how !== undefined || one.link.busy || one.usedMs > old || options.isKept(name);
      if (!used) drop(name);
    }
  }, IDLE_MS / 4);

  return {
    link(name) {
      const one = held.get(name) ?? hold(name);
      one.usedMs = performance.now();
      return one.link;
    },
    here(name) {
      const one = held.get(name);
      return one?.how === undefined ? undefined : { link: one.link, how: one.how };
    },
    shutOut: async (name) => held.get(name)?.link.shutOut(),
    reroute: (name) => held.get(name)?.reroute(),
    drop,
    get hereCount() {
      return held.values().reduce((count, { how }) => count + (how === undefined ? 0 : 1), 0);
    },
    async close() {
      clearInterval(timer);
      stopKeys?.();
      await Promise.all([...held.values()].map(({ link }) => link.close()));
    },
  };
}
