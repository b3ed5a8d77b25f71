import { randomUUID } from "node:crypto";

/** The header that carries the id, both ways. */
export const REQUEST_ID_HEADER = "x-request-id";

const SANE = /^[A-Za-z0-9][A-Za-z0-9._:-]{5,63}$/;

/** The caller's own id where it is 6 to 64 letters, digits and `._:-`, else a new one. */
export function chooseRequestId(given: string | null | undefined, newId: () => string = randomUUID): string {
  return given !== null && given !== undefined && SANE.test(given) ? given : newId();
}
