import { execFile } from "node:child_process";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { createFileRegistry, fromBinary, getExtension, hasExtension } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { createClient } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ServerReflection } from "../../gen/ts/grpc/reflection/v1/reflection_pb.ts";
import { ServerReflection as ServerReflectionAlpha } from "../../gen/ts/grpc/reflection/v1alpha/reflection_pb.ts";
import { access, Role } from "../../gen/ts/reeve/options/v1/access_pb.ts";
import { type EchoServer, startEcho } from "./server.fixture.ts";
import { transportFor } from "./transports.fixture.ts";

const BUF = join(dirname(createRequire(import.meta.url).resolve("@bufbuild/buf/package.json")), "bin", "buf");
const run = promisify(execFile);

let echo: EchoServer;
beforeAll(async () => {
  echo = await startEcho();
});
afterAll(() => echo.server.close(0));

/** Runs `buf curl` where it finds no schema, so that it must ask the server. */
async function curl(path: string, ...args: string[]): Promise<string> {
  const all = ["curl", "--http2-prior-knowledge", "-H", "authorization: Bearer agent-token", ...args, echo.url + path];
  const { stdout } = await run(BUF, all, { cwd: tmpdir(), env: { PATH: process.env.PATH, HOME: tmpdir() } });
  return stdout;
}

describe.each(["grpc-v1", "grpc-v1alpha"])("buf curl with %s", (version) => {
  test("lists the services", async () => {
    expect((await curl("", "--reflect-protocol", version, "--list-services")).trim().split("\n")).toEqual([
      "grpc.health.v1.Health",
      "grpc.reflection.v1.ServerReflection",
      "grpc.reflection.v1alpha.ServerReflection",
      "reeve.test.v1.Echo",
    ]);
  });

  test("lists the methods", async () => {
    const methods = (await curl("", "--reflect-protocol", version, "--list-methods")).trim().split("\n");
    expect(methods).toContain("reeve.test.v1.Echo/Say");
  });

  test.each(["grpc", "grpcweb", "connect"])("calls over %s", async (protocol) => {
    const args = ["--reflect-protocol", version, "--protocol", protocol, "-d", '{"text":"hi","data":{"a":[1]}}'];
    expect(JSON.parse(await curl("/reeve.test.v1.Echo/Say", ...args))).toEqual({ text: "hi", data: { a: [1] } });
  });
});

describe.each([ServerReflection, ServerReflectionAlpha])("$typeName", (service) => {
  type Query = { case: string; value: unknown };

  async function ask(...queries: Query[]): Promise<{ case: string | undefined; value?: unknown }[]> {
    const client = createClient(
      service as typeof ServerReflection,
      transportFor(["grpc", "2", "binary"], echo.url, ""),
    );
    async function* requests(): AsyncGenerator<{ host: string; messageRequest: never }> {
      for (const query of queries) yield { host: "h", messageRequest: query as never };
    }
    const answers = [];
    for await (const answer of client.serverReflectionInfo(requests())) {
      expect(answer).toMatchObject({ validHost: "h", originalRequest: { messageRequest: queries[answers.length] } });
      answers.push(answer.messageResponse);
    }
    return answers;
  }

  const filesOf = (answer: { value?: unknown } | undefined): Uint8Array[] =>
    (answer?.value as { fileDescriptorProto: Uint8Array[] } | undefined)?.fileDescriptorProto ?? [];
  const namesOf = (answer: { value?: unknown } | undefined): string[] =>
    filesOf(answer).map((bytes) => fromBinary(FileDescriptorProtoSchema, bytes).name);

  test.each([
    ["a message", "reeve.test.v1.EchoMessage"],
    ["a field", "reeve.test.v1.EchoMessage.max_bytes"],
    ["a service", "reeve.test.v1.Echo"],
    ["a method", "reeve.test.v1.Echo.Say"],
    ["an entry of a map", "reeve.test.v1.EchoMessage.EnvEntry"],
  ])("finds the file of %s", async (_name, symbol) => {
    const [answer] = await ask({ case: "fileContainingSymbol", value: symbol });
    expect(namesOf(answer)[0]).toBe("reeve/test/v1/echo.proto");
  });

  test.each([
    ["an enum", "reeve.options.v1.Role", "reeve/options/v1/access.proto"],
    ["an enum value", "reeve.options.v1.ROLE_AGENT", "reeve/options/v1/access.proto"],
    ["an extension", "reeve.options.v1.access", "reeve/options/v1/access.proto"],
    ["a oneof", "google.protobuf.Value.kind", "google/protobuf/struct.proto"],
  ])("finds the file of %s in an import", async (_name, symbol, file) => {
    const [answer] = await ask({ case: "fileContainingSymbol", value: symbol });
    expect(namesOf(answer)[0]).toBe(file);
  });

  test("finds a file by its name and an extension by its number", async () => {
    const [byName, byNumber] = await ask(
      { case: "fileByFilename", value: "reeve/test/v1/echo.proto" },
      {
        case: "fileContainingExtension",
        value: { containingType: "google.protobuf.MethodOptions", extensionNumber: 50111 },
      },
    );
    expect(namesOf(byName)[0]).toBe("reeve/test/v1/echo.proto");
    expect(namesOf(byNumber)).toEqual(["reeve/options/v1/access.proto"]); // its imports went out with the first answer
  });

  test("lists the extension numbers of a message", async () => {
    const [answer] = await ask({ case: "allExtensionNumbersOfType", value: "google.protobuf.MethodOptions" });
    expect(answer?.value).toMatchObject({ baseTypeName: "google.protobuf.MethodOptions", extensionNumber: [50111] });
  });

  test.each([
    { case: "fileContainingSymbol", value: "reeve.test.v1.Nope" },
    { case: "fileContainingSymbol", value: "reeve.test.v1.Echo.Nope" },
    { case: "fileContainingSymbol", value: "" },
    { case: "fileContainingSymbol", value: "..." },
    { case: "fileByFilename", value: "nope.proto" },
    { case: "fileContainingExtension", value: { containingType: "x", extensionNumber: 1 } },
    { case: "allExtensionNumbersOfType", value: "reeve.test.v1.Nope" },
  ])("answers not_found for $case $value and goes on", async (query) => {
    const [missing, found] = await ask(query, { case: "listServices", value: "" });
    expect(missing).toMatchObject({ case: "errorResponse", value: { errorCode: 5 } });
    expect(found?.case).toBe("listServicesResponse");
  });

  test("what it sends is a whole schema with the custom options in it", async () => {
    const [answer] = await ask({ case: "fileContainingSymbol", value: "reeve.test.v1.Echo" });
    const files = filesOf(answer).map((bytes) => fromBinary(FileDescriptorProtoSchema, bytes));
    const [echoFile] = files;
    if (echoFile === undefined) throw new Error("no file");
    const registry = createFileRegistry(echoFile, (name) => files.find((file) => file.name === name));
    const options = registry.getService("reeve.test.v1.Echo")?.method.say?.proto.options;
    expect(options !== undefined && hasExtension(options, access)).toBe(true);
    expect(options && getExtension(options, access).roles).toEqual([Role.AGENT, Role.OPERATOR]);
  });
});
