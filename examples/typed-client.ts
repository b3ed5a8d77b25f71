// Governed calls with generated types: list a folder and run a program on a device, through the gate.
//
//   REEVE_TOKEN=... npx node examples/typed-client.ts [device [folder]]
//
// The folder to list has to lie in one of the device's read roots. Default: the one that this runs in.
import { approvalOf, callHeaders, createClient, createReeveTransport, errorOf, FileSystem, Shell } from "reeve/client";

const { REEVE_REGISTRY_URL = "http://127.0.0.1:7400", REEVE_TOKEN = "", REEVE_CA_FILE } = process.env;
const [device, folder = process.cwd()] = process.argv.slice(2);

const transport = createReeveTransport({
  url: REEVE_REGISTRY_URL,
  token: REEVE_TOKEN,
  ...(device !== undefined && { device }),
  ...(REEVE_CA_FILE !== undefined && { caFile: REEVE_CA_FILE }),
});
const files = createClient(FileSystem, transport);
const shell = createClient(Shell, transport);

try {
  const { entries } = await files.list({ path: folder });
  console.log(`${entries.length} entries`);

  const { stdout } = await shell.exec({ argv: ["uname", "-s"] });
  console.log(`it runs ${stdout.trim()}`);

  // Shell text that writes waits for a person. With a deadline or a wait, the call would wait for the decision.
  await shell.eval(
    { command: "ls | wc -l > count.txt" },
    { headers: callHeaders({ purpose: "to count files", waitMs: 0 }) },
  );
} catch (error) {
  const needed = approvalOf(error);
  if (needed === undefined) {
    const { name, message } = errorOf(error);
    console.error(`${name}: ${message}`);
    process.exitCode = 1;
  } else {
    console.log(`waits for approval ${needed.approvalId}: reeve approval approve ${needed.approvalId}`);
  }
} finally {
  transport.close();
}
