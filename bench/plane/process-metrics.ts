/** What a service's process says of itself. */
export interface ProcessMetrics {
  rssBytes: number;
  /** What its JavaScript heap holds, garbage included, in bytes. */
  heapUsedBytes: number;
  /** Processor time since its start, in seconds. */
  cpuSeconds: number;
  /** Devices that are linked to it; 0 where it is no registry. */
  devicesLinked: number;
}

/** Asks a service's probe port. */
export async function readMetrics(probePort: number): Promise<ProcessMetrics> {
  const response = await fetch(`http://127.0.0.1:${probePort}/metrics`);
  const text = await response.text();
  return {
    rssBytes: sampleIn(text, "process_resident_memory_bytes"),
    heapUsedBytes: sampleIn(text, "nodejs_heap_size_used_bytes"),
    cpuSeconds: sampleIn(text, "process_cpu_seconds_total"),
    devicesLinked: sampleIn(text, "reeve_devices_linked"),
  };
}

/** The value of a metric without labels in Prometheus's text format; 0 where it is missing. */
export function sampleIn(text: string, name: string): number {
  const line = text.split("\n").find((each) => each.startsWith(`${name} `));
  return line === undefined ? 0 : Number(line.slice(name.length + 1));
}
