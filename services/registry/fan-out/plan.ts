/** A device of a plan. */
export interface PlannedDevice {
  id: string;
  name: string;
}

/** Which devices are called, wave by wave. */
export type Waves = readonly (readonly PlannedDevice[])[];

/** How large waves are. */
export interface WaveSizes {
  /** Devices at a time; 0 is all of them. */
  waveSize: number;
  /** Devices in the first wave; 0 is as many as in the others. */
  canary: number;
}

/** Divides devices into waves, in their order: first the canary, where one is wanted, then the others. Pure. */
export function planWaves(devices: readonly PlannedDevice[], { waveSize, canary }: WaveSizes): Waves {
  const first = canary === 0 ? [] : [devices.slice(0, canary)];
  const rest = devices.slice(canary);
  const size = waveSize === 0 ? Math.max(1, rest.length) : waveSize;
  const count = Math.ceil(rest.length / size);
  return [...first, ...Array.from({ length: count }, (_, at) => rest.slice(at * size, (at + 1) * size))];
}
