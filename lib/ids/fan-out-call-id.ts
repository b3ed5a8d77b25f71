/**
 * The id of the call that a fan-out makes on one device. Always the same, so that trying again meets the same call, and an
 * approval of the whole covers each device once.
 */
export function fanOutCallId(fanOutId: string, deviceId: string): string {
  return `${fanOutId}-${deviceId}`;
}
