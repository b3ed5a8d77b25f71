import { type Client, createClient } from "@connectrpc/connect";
import { Health, HealthCheckResponse_ServingStatus as Serving } from "../../gen/ts/grpc/health/v1/health_pb.ts";
import { createServiceTransport } from "../../lib/rpc-client/transport.ts";
import { readCaFile } from "../ca-file.ts";
import type { CommandContext } from "../command-context.ts";
import { describeError } from "../errors/describe-error.ts";
import { durationText } from "../print/time.ts";
import { broken, type Finding, note, ok } from "./finding.ts";

/** How long a service may take to answer, in milliseconds. */
const TIMEOUT_MS = 5000;

/** The largest difference of two clocks that is not worth a word, in milliseconds. Grants live for minutes. */
const CLOCK_MS = 10_000;

/** Whether a service can be reached and says that it is healthy, and whether its clock is ours. Needs no token. */
export async function checkService(
  name: string,
  address: string,
  { now }: Pick<CommandContext, "now">,
  { caFile, socketPath }: { caFile?: string | undefined; socketPath?: string | undefined } = {},
): Promise<Finding[]> {
  let ca: string | undefined;
  try {
    ca = caFile === undefined ? undefined : readCaFile(caFile);
  } catch (error: unknown) {
    return [
      broken(name, describeError(error).message, "set REEVE_CA_FILE to the file that the control plane's owner gives"),
    ];
  }
  const transport = createServiceTransport({ baseUrl: address, socketPath, defaultTimeoutMs: TIMEOUT_MS, ca });
  try {
    return await checkHealth(name, address, createClient(Health, transport), now);
  } catch (error: unknown) {
    const { message } = describeError(error);
    return [broken(name, `${address}: ${message}`, "is it running? `reeve up` runs everything on this machine")];
  } finally {
    transport.close();
  }
}

async function checkHealth(
  name: string,
  address: string,
  health: Client<typeof Health>,
  now: () => number,
): Promise<Finding[]> {
  const start = now();
  let date: string | null = null;
  const onHeader = (headers: Headers) => {
    date = headers.get("date");
  };
  const { status } = await health.check({ service: "" }, { onHeader });
  const took = now() - start;
  if (status !== Serving.SERVING) {
    return [
      broken(
        name,
        `${address} answers, but says that it does not serve`,
        "its /healthz names what is unavailable, if anything is; it may also be starting",
      ),
    ];
  }
  return [ok(name, `${address}, healthy, ${durationText(took)}`), ...compareClocks(name, date, start + took / 2)];
}

/** The header has whole seconds. */
function compareClocks(name: string, date: string | null, at: number): Finding[] {
  const theirs = Date.parse(date ?? "");
  if (Number.isNaN(theirs)) return [];
  const apart = Math.abs(theirs + 500 - at);
  if (apart < CLOCK_MS) return [];
  return [note("clock", `${name}'s clock and this machine's are ${durationText(apart)} apart`, "set both by NTP")];
}
