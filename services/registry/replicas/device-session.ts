import { create } from "@bufbuild/protobuf";
import { OpenDeviceSchema } from "../../../gen/ts/reeve/cluster/v1/replica_pb.ts";
import type { LinkRequest, LinkResponse } from "../../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import { fromDevice, toDevice } from "../../../lib/link/device-frames.ts";
import { framedEnd, framedOpener } from "../../../lib/link/framed.ts";
import type { DeviceOpener } from "../devices/device-link.ts";
import type { Session } from "./session.ts";
import type { Sessions } from "./sessions.ts";

/** The way to a device that another replica holds. Framed as any other link: windows and pieces keep messages small. */
export function remoteDevice(sessions: Pick<Sessions, "open">, replicaId: string, deviceId: string): DeviceOpener {
  return framedOpener<LinkRequest, LinkResponse>((requests, signal) => {
    const session = sessions.open(replicaId, { case: "openDevice", value: create(OpenDeviceSchema, { deviceId }) });
    endWith(signal, session);
    void say(session, requests, (value) => ({ case: "toDevice", value }));
    return heard(session, "fromDevice");
  }, toDevice);
}

/** Serves a device that this replica holds to another one. */
export function serveDevice(session: Session, share: DeviceOpener): Promise<void> {
  const end = framedEnd<LinkResponse, LinkRequest>(share, fromDevice);
  return say(session, end(heard(session, "toDevice"), session.over), (value) => ({ case: "fromDevice", value }));
}

/** Sends everything, then closes the session. */
async function say<M>(
  session: Session,
  messages: AsyncIterable<M>,
  wrap: (message: M) => Parameters<Session["send"]>[0],
): Promise<void> {
  try {
    for await (const message of messages) {
      if (session.over.aborted) return;
      session.send(wrap(message));
    }
    session.close();
  } catch (error: unknown) {
    session.close(error instanceof Error ? error.message : String(error));
  }
}

/** What the other side says in a session of this kind. Anything else is passed over. */
async function* heard<K extends "toDevice" | "fromDevice">(
  session: Session,
  kind: K,
): AsyncGenerator<K extends "toDevice" ? LinkRequest : LinkResponse> {
  for await (const message of session.messages()) {
    if (message.case === kind) yield message.value as K extends "toDevice" ? LinkRequest : LinkResponse;
  }
}

function endWith(signal: AbortSignal, session: Session): void {
  const end = () => session.close();
  if (signal.aborted) end();
  signal.addEventListener("abort", end, { once: true });
  session.over.addEventListener("abort", () => signal.removeEventListener("abort", end), { once: true });
}
