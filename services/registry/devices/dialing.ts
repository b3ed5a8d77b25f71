import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import type { ControlFrame, DeviceFrame } from "../../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import { fullJitter } from "../../../lib/link/backoff.ts";
import type { DeviceDialer } from "./device-link.ts";
import { attachAgain, type OpenStream } from "./session.ts";

/** How one device is dialed. */
export interface DialOptions {
  dialer: DeviceDialer;
  /** Whether to dial now. Otherwise the dialer waits until it is woken. */
  mayDial(): boolean;
  /** The dial failed, or the device was not admitted. */
  onFailed(error: unknown): void;
}

/** Holds sessions to the devices that the registry dials. */
export interface Dialers {
  /** Dials a device, and again whenever its session ends. */
  dial(name: string, options: DialOptions): void;
  /** Dials now where that was waited for. */
  wake(): void;
  /** Dials no more. */
  stop(): void;
  /** Ends all sessions with this error. */
  end(error: unknown): void;
}

/** The longest wait between two dials, in milliseconds. */
const LONGEST_PAUSE_MS = 1000;

/** A session that lasted so long was no failure, in milliseconds. */
const LASTING_MS = 2000;

/** @param connect admits the device, or rejects. */
export function createDialers(connect: (name: string, stream: OpenStream) => Promise<unknown>): Dialers {
  const stopping = new AbortController();
  const streams = new Set<(error: unknown) => void>();
  const waiting = new Set<() => void>();

  /** Resolves when the dialers are woken, or after so many milliseconds. A day: only waking matters. */
  const woken = async (ms = 86_400_000): Promise<void> => {
    const waited = new AbortController();
    const wake = (): void => waited.abort();
    waiting.add(wake);
    await sleep(ms, undefined, { signal: AbortSignal.any([waited.signal, stopping.signal]) }).catch(() => undefined);
    waiting.delete(wake);
  };
  /** One dial: resolves when its session is gone. */
  const dialOnce = async (name: string, dialer: DeviceDialer): Promise<void> => {
    const over = new AbortController();
    const commands = Promise.withResolvers<AsyncIterable<ControlFrame>>();
    const end = (error: unknown): void => {
      over.abort(error);
      commands.resolve(noCommands());
    };
    const gone = over.signal;
    streams.add(end);
    try {
      const frames = endingWith(dialer(deferred(commands.promise), gone)[Symbol.asyncIterator](), end);
      // Asked only about attach counts that come twice, and a dialed device has none.
      const isAlive = () => Promise.resolve(true);
      await connect(name, { frames, gone, isAlive, send: commands.resolve, end });
      if (!gone.aborted) await once(gone, "abort");
    } finally {
      end(new Error("the dial is over"));
      streams.delete(end);
    }
  };
  const keepDialing = async (name: string, { dialer, mayDial, onFailed }: DialOptions): Promise<void> => {
    for (let failures = 0; !stopping.signal.aborted; ) {
      while (!mayDial() && !stopping.signal.aborted) await woken();
      const began = performance.now();
      try {
        await dialOnce(name, dialer);
      } catch (error: unknown) {
        if (!stopping.signal.aborted) onFailed(error);
      }
      failures = performance.now() - began > LASTING_MS ? 0 : failures + 1;
      await woken(fullJitter(failures, LONGEST_PAUSE_MS));
    }
  };

  return {
    dial: (name, options) => void keepDialing(name, options),
    wake() {
      for (const wake of [...waiting]) wake();
    },
    stop: () => stopping.abort(),
    end(error) {
      for (const end of [...streams]) end(error);
    },
  };
}

export async function* noCommands(): AsyncGenerator<never, void, void> {
  // Nothing to send.
}

async function* deferred<T>(promise: Promise<AsyncIterable<T>>): AsyncGenerator<T, void, void> {
  yield* await promise;
}

/** The same frames, with a call when they end. */
function endingWith(frames: AsyncIterator<DeviceFrame>, end: (error: unknown) => void): AsyncIterator<DeviceFrame> {
  return {
    async next() {
      try {
        const next = await frames.next();
        if (next.done === true) end(attachAgain("the device has left"));
        return next;
      } catch (error: unknown) {
        end(error);
        throw error;
      }
    },
  };
}
