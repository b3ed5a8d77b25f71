/** Changes of devices that are committed by another part than the fleet, such as a lock. */
export interface DeviceChanges {
  /** Resolves when every subscriber has brought in what was just committed. */
  announce(): Promise<void>;
  subscribe(subscriber: () => Promise<void>): void;
}

export function createDeviceChanges(): DeviceChanges {
  const subscribers: (() => Promise<void>)[] = [];
  return {
    announce: async () => void (await Promise.all(subscribers.map((subscriber) => subscriber()))),
    subscribe: (subscriber) => void subscribers.push(subscriber),
  };
}
