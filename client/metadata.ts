import type { Transport } from "@connectrpc/connect";

/** What a typed call can say besides its arguments. */
export interface CallMetadata {
  /** The device, by name or id. May be left out where there is only one. */
  device?: string;
  /** The call's id, so that trying again runs nothing twice: letters, digits, "-" and "_", at most 64. Default: a new one. */
  callId?: string;
  /** Why this is wanted: shown to the human who decides. ASCII, at most 1000 characters. */
  purpose?: string;
  /**
   * How long to wait for the human that a held call needs, in milliseconds. 0: not at all. Default: until shortly before
   * the call's deadline, and not at all where it has none.
   */
  waitMs?: number;
  /** What the caller says that it is, for display only: printable ASCII, at most 64 characters. */
  client?: string;
}

/** The request headers for a typed call: `files.read({ path }, { headers: callHeaders({ purpose: "to know" }) })`. */
export function callHeaders({ device, callId, purpose, waitMs, client }: CallMetadata): Record<string, string> {
  return {
    ...(device !== undefined && { "reeve-device": device }),
    ...(callId !== undefined && { "reeve-call-id": callId }),
    ...(purpose !== undefined && { "reeve-purpose": purpose }),
    ...(waitMs !== undefined && { "reeve-wait-ms": String(waitMs) }),
    ...(client !== undefined && { "reeve-client": client }),
  };
}

/** The same transport for typed calls on another device. What a single call says of its device goes first. */
export function withDevice(transport: Transport, device: string): Transport {
  const toDevice = (header: HeadersInit | undefined): Headers => {
    const headers = new Headers(header);
    if (!headers.has("reeve-device")) headers.set("reeve-device", device);
    return headers;
  };
  return {
    unary: (method, signal, timeoutMs, header, input, contextValues) =>
      transport.unary(method, signal, timeoutMs, toDevice(header), input, contextValues),
    stream: (method, signal, timeoutMs, header, input, contextValues) =>
      transport.stream(method, signal, timeoutMs, toDevice(header), input, contextValues),
  };
}
