/** The name under which the log speaks of one tool on one device. */
export function deviceToolResource(deviceId: string, tool: string): string {
  return `devices/${deviceId}/tools/${tool}`;
}

/** The name under which the log speaks of one tool on all the devices of a fan-out. */
export function fanOutToolResource(fanOutId: string, tool: string): string {
  return `fan-outs/${fanOutId}/tools/${tool}`;
}
