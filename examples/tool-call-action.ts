// A rule engine's way in: what a rule wants done is data, which becomes a governed call under the rules for workflows.
//
//   reeve token create --role workflow --name rules
//   REEVE_TOKEN=... npx node examples/tool-call-action.ts [device]
//
// Running it again with the same event returns the same call, and runs nothing twice.
import { createReeveTransport, registryClient, runToolCallAction, type ToolCallAction } from "reeve/client";

const { REEVE_REGISTRY_URL = "http://127.0.0.1:7400", REEVE_TOKEN = "", REEVE_CA_FILE } = process.env;
const [device = "this"] = process.argv.slice(2);

interface DiskEvent {
  id: string;
  percent: number;
}

/** The rule: pure, and easy to test. */
function onDiskEvent({ percent }: DiskEvent): ToolCallAction | undefined {
  return percent > 90 ? { tool: "exec", device, args: { argv: ["df", "-h", "/"] } } : undefined;
}

const transport = createReeveTransport({
  url: REEVE_REGISTRY_URL,
  token: REEVE_TOKEN,
  ...(REEVE_CA_FILE !== undefined && { caFile: REEVE_CA_FILE }),
});
const event: DiskEvent = { id: "disk-2026-11-23", percent: 97 };
const action = onDiskEvent(event);
if (action !== undefined) {
  const origin = { rule: "disk-full", idempotencyKey: event.id };
  const result = await runToolCallAction(registryClient(transport), action, origin);
  switch (result.kind) {
    case "succeeded":
      console.log(result.output.stdout);
      break;
    case "held":
      console.log(`waits for approval ${result.approvalId}: reeve approval approve ${result.approvalId}`);
      break;
    case "queued":
      console.log(`the device is offline: ${result.callId} waits for it`);
      break;
    default:
      console.error(`${result.kind}: ${result.reason}: ${result.message}`);
      process.exitCode = 1;
  }
}
transport.close();
