/** The name under which the log speaks of one tool on one device. */
export function deviceToolResource(deviceId: string, tool: string): string {
  return `devices/${deviceId}/tools/${tool}`;
}
