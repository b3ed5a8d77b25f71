// A governed call, and a typed error, with what buf made of proto/ alone.
import { ConnectError, createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { BadRequestSchema, ErrorInfoSchema } from "../../../gen/ts/google/rpc/error_details_pb.ts";
import { ErrorDetailSchema, ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { FileSystem } from "../../../gen/ts/reeve/tools/v1/file_system_pb.ts";
import { Shell } from "../../../gen/ts/reeve/tools/v1/shell_pb.ts";

const [address] = process.argv.slice(2);
const transport = createGrpcTransport({ baseUrl: `http://${address}` });
const headers = { authorization: `Bearer ${process.env.REEVE_TOKEN}`, "reeve-device": "this" };

async function read(path: string): Promise<ConnectError> {
  try {
    await createClient(FileSystem, transport).read({ path }, { headers });
  } catch (error: unknown) {
    return ConnectError.from(error);
  }
  throw new Error("the read did not fail");
}

const { stdout } = await createClient(Shell, transport).exec({ argv: ["echo", "governed"] }, { headers });
const outside = await read("/proc/1/environ");
const [info] = outside.findDetails(ErrorInfoSchema);
const [detail] = outside.findDetails(ErrorDetailSchema);
const wrong = await read("");
console.log(
  JSON.stringify({
    stdout,
    outside: [outside.code, info?.reason, info?.domain, detail?.reason === ErrorReason.PATH_OUTSIDE_ROOTS],
    wrong: [wrong.code, wrong.findDetails(BadRequestSchema)[0]?.fieldViolations.map(({ field }) => field)],
  }),
);
