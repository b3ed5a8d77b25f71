import type { DeviceCommand, DeviceHello } from "../../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import { createDeviceLink, type DeviceLink } from "./device-link.ts";
import { createRoute, type Way } from "./route.ts";

/** What waits for each device, by the devices' names. A link is made when it is first needed. */
export interface Links {
  /** The device's link. */
  link(name: string): DeviceLink;
  /** Ends what runs on a device that lost its admission; see DeviceLink. Resolves at once where there is no link. */
  shutOut(name: string): Promise<void>;
  /** Whether the device is reached now. */
  isUp(name: string): boolean;
  /** The device's session is gone; see DeviceLink. */
  pause(name: string): void;
  /** Another way may be the best now. */
  reroute(name: string): void;
  /** Closes a link for good: its device was removed, or it is idle. */
  drop(name: string): void;
  close(): Promise<void>;
}

export interface LinksOptions {
  /** The best way to a device now. */
  choose(name: string): Way | undefined;
  /** Whether what a device says of itself is trusted. */
  isTrusted(name: string, hello: DeviceHello): boolean;
  /** What a device is sent before anything else. */
  initialCommands(name: string): readonly DeviceCommand[];
  /** More about why a device is offline. */
  whyOffline(name: string): string | undefined;
  /** Whether this process has a session with the device, which keeps its link. */
  isHere(name: string): boolean;
}

/** A link that was idle for so long is closed, in milliseconds. */
const IDLE_MS = 60_000;

interface OpenLink {
  link: DeviceLink;
  usedMs: number;
  reroute(): void;
}

/** No links yet. */
export function createLinks(options: LinksOptions): Links {
  const links = new Map<string, OpenLink>();
  const open = (name: string): OpenLink => {
    const route = createRoute(() => options.choose(name));
    const link = createDeviceLink({
      dialer: route.dialer,
      maxBackoffMs: 0,
      onHello: (hello) => options.isTrusted(name, hello),
      initialCommands: () => options.initialCommands(name),
      whyOffline: () => options.whyOffline(name),
    });
    const one = { link, usedMs: performance.now(), reroute: route.update };
    links.set(name, one);
    return one;
  };
  const drop = (name: string): void => {
    const one = links.get(name);
    links.delete(name);
    void one?.link.abandon();
  };
  const timer = setInterval(() => {
    const old = performance.now() - IDLE_MS;
    for (const [name, { link, usedMs }] of links) {
      if (!options.isHere(name) && !link.busy && usedMs <= old) drop(name);
    }
  }, IDLE_MS / 4);

  return {
    link(name) {
      const one = links.get(name) ?? open(name);
      one.usedMs = performance.now();
      return one.link;
    },
    shutOut: async (name) => links.get(name)?.link.shutOut(),
    pause: (name) => links.get(name)?.link.pause(),
    isUp: (name) => links.get(name)?.link.isUp ?? false,
    reroute: (name) => links.get(name)?.reroute(),
    drop,
    async close() {
      clearInterval(timer);
      await Promise.all([...links.values()].map(({ link }) => link.close()));
    },
  };
}
