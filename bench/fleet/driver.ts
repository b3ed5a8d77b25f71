import { once } from "node:events";
import { createClient } from "@connectrpc/connect";
import { EnrollmentService } from "../../gen/ts/reeve/enrollment/v1/enrollment_service_pb.ts";
import { createServiceTransport } from "../../lib/rpc-client/transport.ts";
import { eachOf } from "../measure/each-of.ts";
import { attachDevice, type SimulatedDevice } from "./device.ts";
import type { DriverSettings, DriverState, FromDriver, Question, ToDriver } from "./driver-messages.ts";
import { type Enrolled, enroll } from "./enroll.ts";
import { openWorkshop } from "./workshop.ts";

// A process with some of the simulated devices: they are no part of what is measured, and so not in its process.

/** So many join at a time: a connection without authentication may have no more calls under way. */
const ENROLL_AT_ONCE = 8;

const [first] = (await once(process, "message")) as [ToDriver];
if (!("settings" in first)) throw new Error("a driver gets its settings first");
const { settings } = first;
const workshop = await openWorkshop();
let enrolled: Enrolled[] = [];
const devices: SimulatedDevice[] = [];

process.on("message", (message: ToDriver) => {
  if (!("question" in message)) return;
  const { id, question } = message;
  answer(question).then(
    () => send({ id, state: stateOf() }),
    (error: unknown) => send({ id, error: String(error) }),
  );
});
process.on("disconnect", () => process.exit(0));

async function answer(question: Question): Promise<void> {
  if (question.kind === "enroll") enrolled = await enrollAll(settings);
  else if (question.kind === "attach") {
    for (const one of enrolled.slice(devices.length, question.count)) {
      devices.push(attachDevice(one, settings.registryUrl, workshop));
    }
  } else if (question.kind === "close") {
    await Promise.all(devices.map((device) => device.close()));
    await workshop.close();
  }
}

async function enrollAll({
  registryUrl: baseUrl,
  ca,
  operatorToken: token,
  names,
}: DriverSettings): Promise<Enrolled[]> {
  const asOperator = createServiceTransport({ baseUrl, ca, token });
  const asMachine = createServiceTransport({ baseUrl, ca });
  try {
    const options = {
      operator: createClient(EnrollmentService, asOperator),
      machine: createClient(EnrollmentService, asMachine),
      ca,
    };
    return await eachOf(names, ENROLL_AT_ONCE, (name) => enroll(name, options));
  } finally {
    asOperator.close();
    asMachine.close();
  }
}

function stateOf(): DriverState {
  const { user, system } = process.cpuUsage();
  return {
    attached: devices.filter(({ isAttached }) => isAttached).length,
    dials: devices.reduce((sum, device) => sum + device.dials, 0),
    cpuUs: user + system,
    rssBytes: process.memoryUsage.rss(),
  };
}

function send(message: FromDriver): void {
  process.send?.(message);
}
