import { createEndpoint, type Endpoint, type FramedOptions } from "./framing/endpoint.ts";
import type { Shapes } from "./framing/shape.ts";
import type { StreamFactory } from "./stream.ts";

export type { FramedOptions } from "./framing/endpoint.ts";
export type { Shape, Shapes } from "./framing/shape.ts";

/**
 * Streams with numbers, windows, pieces and heartbeats, over streams that have none. With a side whose first message has no
 * framing they are as the wire itself. A link that breaks the rules, or falls silent, ends with a
 * fault: INVALID_INPUT, INPUT_TOO_LARGE or NOT_READY. What it returns must be read, or left with `return`.
 */
export function framedDialer<Out, In>(
  wire: StreamFactory<Out, In>,
  shapes: Shapes<Out, In>,
  options: FramedOptions = {},
): StreamFactory<Out, In> {
  return (requests, signal) => {
    const endpoint = createEndpoint(shapes, { dials: true, endsWith: "messages" }, options);
    follow(signal, endpoint);
    void endpoint.readWire(wire(endpoint.frames(), endpoint.ended));
    void endpoint.readSource(requests);
    return endpoint.messages();
  };
}

/**
 * The side that is dialed, as an RPC's handler: what comes and goes through `end` has no framing, what comes and goes
 * outside has it where the other side shows some first. The signal that `end` gets is aborted with the link.
 */
export function framedEnd<Out, In>(
  end: StreamFactory<In, Out>,
  shapes: Shapes<Out, In>,
  options: FramedOptions = {},
): StreamFactory<In, Out> {
  return (requests, signal) => {
    const endpoint = createEndpoint(shapes, { dials: false, endsWith: "frames" }, options);
    follow(signal, endpoint);
    void endpoint.readWire(requests);
    void endpoint.readSource(end(endpoint.messages(), endpoint.ended));
    return endpoint.frames();
  };
}

/**
 * Dials, and serves what comes: `end` gets the other side's messages and answers them. What it says first goes out when
 * the other side has answered, so that no caller acts on a dial that was given up meanwhile. Resolves when the stream has
 * ended well; rejects with what it ended with otherwise.
 */
export async function dialFramed<Out, In>(
  end: StreamFactory<In, Out>,
  wire: StreamFactory<Out, In>,
  shapes: Shapes<Out, In>,
  signal: AbortSignal,
  options: FramedOptions = {},
): Promise<void> {
  const endpoint = createEndpoint(shapes, { dials: true, waits: true, endsWith: "wire" }, options);
  follow(signal, endpoint);
  void endpoint.readSource(end(endpoint.messages(), endpoint.ended));
  await endpoint.readWire(wire(endpoint.frames(), endpoint.ended));
  if (endpoint.error !== undefined) throw endpoint.error;
}

/** Ends the endpoint when the signal is aborted, which may outlive many links. */
function follow(signal: AbortSignal, endpoint: Endpoint<unknown, unknown>): void {
  const end = (): void => endpoint.end(signal.reason);
  signal.addEventListener("abort", end, { once: true });
  endpoint.ended.addEventListener("abort", () => signal.removeEventListener("abort", end), { once: true });
  if (signal.aborted) end();
}
