import { mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { create, type JsonObject, toBinary } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { type ConnectRouter, createRouterTransport } from "@connectrpc/connect";
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { ServerReflection } from "../../../../gen/ts/grpc/reflection/v1/reflection_pb.ts";
import { ErrorReason } from "../../../../gen/ts/reeve/common/v1/error_pb.ts";
import { fault } from "../../../../lib/fault/fault.ts";
import { serveReflection } from "../../../../lib/server/reflection.ts";
import { indexServices } from "../../../../lib/server/reflection-index.ts";
import { eventually } from "../../../../testkit/eventually.ts";
import {
  compileSource,
  descriptorSetOf,
  PRINTER_PROTO,
  type Printer,
  startPrinter,
} from "../../../../testkit/printer.ts";
import { createTestContext, faultOf, type TestContext } from "../../tools/testing/context.ts";
import type { ToolContext } from "../../tools/tool.ts";
import { type CollectedTools, collectTools } from "../collect.ts";
import type { ToolProvider } from "../provider.ts";
import { openGrpcTools } from "./provider.ts";
import { reflectFiles } from "./reflect.ts";

let printer: Printer;
let opened: ToolProvider;
let folder: string;
let scene: TestContext;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "reeve-announced-"));
  scene = createTestContext();
  printer = await startPrinter();
  opened = await openGrpcTools([{ name: "printer", url: printer.url, descriptorFile: undefined }]);
});
afterAll(async () => {
  opened[Symbol.dispose]();
  await printer.close();
  scene[Symbol.dispose]();
  await rm(folder, { recursive: true });
});
beforeEach(() => {
  printer.fail = undefined;
});

/** In one step, so that no reader finds half of it. */
async function replaceFile(path: string, content: Uint8Array | string): Promise<void> {
  await writeFile(`${path}.new`, content);
  await rename(`${path}.new`, path);
}

function collected(provider: ToolProvider): CollectedTools {
  return collectTools([provider.provided()]);
}

function print(text: string, changes: Partial<ToolContext> = {}): Promise<JsonObject> {
  const tool = collected(opened).tools.find(({ spec }) => spec.name === "printer:print");
  const prepared = tool?.prepare({ text });
  if (prepared?.ok !== true) throw new Error("the printer was not announced");
  return prepared.run({ ...scene.context, ...changes });
}

describe("a listed service", () => {
  test("is announced with its own files, the same each time", async () => {
    using again = await openGrpcTools([{ name: "printer", url: printer.url, descriptorFile: undefined }]);
    const { announced, tools } = collected(opened);
    expect(announced.map(({ definition }) => (definition.case === "service" ? definition.value.service : ""))).toEqual([
      "acme.printer.v1.Printer",
    ]);
    expect(collected(again).announced).toEqual(announced);
    expect(tools.map(({ spec }) => spec.name)).toEqual(["printer:print", "printer:paper.get"]);
  });

  test("is read from a file as it is by reflection", async () => {
    const descriptorFile = join(folder, "printer.binpb");
    await writeFile(descriptorFile, descriptorSetOf(printer.registry));
    using fromFile = await openGrpcTools([{ name: "printer", url: printer.url, descriptorFile }]);
    expect(collected(fromFile).known).toEqual(collected(opened).known);
  });

  test("that cannot be reached, or whose file is invalid, is listed with why", async () => {
    const bad = join(folder, "bad.binpb");
    await writeFile(bad, "no descriptors");
    using none = await openGrpcTools([
      { name: "unreachable", url: "http://127.0.0.1:1", descriptorFile: undefined },
      { name: "bad", url: printer.url, descriptorFile: bad },
      { name: "missing", url: printer.url, descriptorFile: join(folder, "missing") },
    ]);
    const { tools, unavailable } = collected(none);
    expect(tools).toEqual([]);
    expect(unavailable.map(({ tool }) => tool)).toEqual(["unreachable", "bad", "missing"]);
    expect(unavailable[0]?.why).toContain("server reflection");
  });

  test("gets the call and gives its answer", async () => {
    expect(await print("hello")).toMatchObject({ pages: 1 });
    expect(printer.printed.at(-1)).toEqual({ text: "hello", copies: 0 });
  });

  test("fails a call with its own code and words, cleaned", async () => {
    printer.fail = () => fault(ErrorReason.NOT_FOUND, {}, { message: "no\u001b[31m tray" });
    expect(await faultOf(print("x"))).toEqual({
      reason: ErrorReason.TOOL_FAILED,
      metadata: { service: "acme.printer.v1.Printer", code: "not_found" },
      message: "acme.printer.v1.Printer answered not_found: no tray",
    });
  });

  test("that takes longer than the call may is given up", async () => {
    expect(await faultOf(print("forever", { timeoutMs: 200 }))).toMatchObject({ reason: ErrorReason.TIMED_OUT });
    await printer.gaveUp;
  });

  test("is not called for a call that was canceled", async () => {
    const signal = AbortSignal.abort();
    expect(await faultOf(print("never", { signal }))).toMatchObject({ reason: ErrorReason.CANCELED });
    expect(printer.printed.map(({ text }) => text)).not.toContain("never");
  });
});

describe("a listed service is read again", () => {
  const changed = () => compileSource(PRINTER_PROTO.replace('name: "paper.get"', 'name: "paper.count"'));

  /** A provider of the printer from a file, and of another service whose next change shows that both were read. */
  async function watch(printerFile: Uint8Array | undefined) {
    const files = await mkdtemp(join(folder, "again-"));
    const [file, other] = [join(files, "printer.binpb"), join(files, "other.binpb")];
    if (printerFile !== undefined) await writeFile(file, printerFile);
    await writeFile(other, descriptorSetOf(printer.registry));
    const list = [
      { name: "printer", url: printer.url, descriptorFile: file },
      { name: "other", url: printer.url, descriptorFile: other },
    ];
    const provider = await openGrpcTools(list, { refreshMs: 5 });
    const onChange = vi.fn<() => void>();
    const stop = provider.onChange(onChange);
    return {
      provider,
      onChange,
      stop,
      write: (bytes: Uint8Array | string) => replaceFile(file, bytes),
      why: () => collected(provider).unavailable.find(({ tool }) => tool === "printer")?.why,
      remove: () => rm(file),
      names: () => collected(provider).tools.map(({ spec }) => spec.name),
      /** Resolves when both were read once more. */
      async read() {
        const seen = onChange.mock.calls.length;
        const wasChanged = collected(provider).tools.some(({ spec }) => spec.name === "other:paper.count");
        await replaceFile(other, descriptorSetOf(wasChanged ? printer.registry : await changed()));
        await eventually(() => expect(onChange.mock.calls.length).toBeGreaterThan(seen));
      },
      [Symbol.dispose]: () => provider[Symbol.dispose](),
    };
  }
  const ofPrinter = (names: string[]) => names.filter((name) => name.startsWith("printer:"));

  test("and its new RPCs replace those of before, with one notice of the change", async () => {
    using watched = await watch(descriptorSetOf(printer.registry));
    expect(ofPrinter(watched.names())).toEqual(["printer:print", "printer:paper.get"]);
    await watched.write(descriptorSetOf(await changed()));
    await eventually(() => expect(ofPrinter(watched.names())).toEqual(["printer:print", "printer:paper.count"]));
    expect(watched.onChange).toHaveBeenCalledTimes(1);
    await watched.read();
    expect(watched.onChange).toHaveBeenCalledTimes(2);
  });

  test("and keeps what it announced where its descriptors cannot be read, and takes what comes after", async () => {
    using watched = await watch(descriptorSetOf(printer.registry));
    await watched.remove();
    await watched.read();
    for (const unusable of ["no descriptors", ""]) {
      await watched.write(unusable);
      await watched.read();
    }
    expect(ofPrinter(watched.names())).toEqual(["printer:print", "printer:paper.get"]);
    expect(watched.why()).toBeUndefined();
    expect(watched.onChange).toHaveBeenCalledTimes(3);
    await watched.write(descriptorSetOf(await changed()));
    await eventually(() => expect(watched.names()).toContain("printer:paper.count"));
  });

  test("and loses its tools where it has no annotated RPC any more", async () => {
    using watched = await watch(descriptorSetOf(printer.registry));
    const bare = PRINTER_PROTO.replace(/^ *option \(reeve.*$/gm, "");
    await watched.write(descriptorSetOf(await compileSource(bare)));
    await eventually(() => expect(ofPrinter(watched.names())).toEqual([]));
    expect(watched.why()).toContain("none of its RPCs");
  });

  test("and is announced once it can be read for the first time", async () => {
    using watched = await watch(undefined);
    expect(watched.why()).toContain("cannot be read from");
    await watched.read();
    expect(watched.why()).toContain("cannot be read from");
    await watched.write(descriptorSetOf(printer.registry));
    await eventually(() => expect(ofPrinter(watched.names())).toHaveLength(2));
    expect(watched.why()).toBeUndefined();
  });

  test("over reflection, and keeps what it announced while it is down", async () => {
    const own = await startPrinter();
    using provider = await openGrpcTools([{ name: "printer", url: own.url, descriptorFile: undefined }], {
      refreshMs: 5,
    });
    const before = collected(provider).known;
    const onChange = vi.fn<() => void>();
    provider.onChange(onChange);
    await own.close();
    // Time for it to be asked, and to fail.
    await new Promise((resolve) => setTimeout(resolve, 200));
    expect(collected(provider).known).toEqual(before);
    expect(onChange).not.toHaveBeenCalled();
  });

  test("until the provider is disposed, and a listener until it stops", async () => {
    const watched = await watch(descriptorSetOf(printer.registry));
    const other = vi.fn<() => void>();
    watched.provider.onChange(other);
    await watched.read();
    watched.stop();
    await watched.write(descriptorSetOf(await changed()));
    await eventually(() => expect(other).toHaveBeenCalledTimes(2));
    expect(watched.onChange).toHaveBeenCalledTimes(1);
    watched[Symbol.dispose]();
    await watched.write(descriptorSetOf(printer.registry));
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(other).toHaveBeenCalledTimes(2);
  });
});

describe("reflectFiles", () => {
  const serve = (version: "v1" | "v1alpha") =>
    createRouterTransport((router) => {
      const service = printer.registry.getService("acme.printer.v1.Printer");
      const only: Pick<ConnectRouter, "service"> = {
        service(desc, implementation, options) {
          if (desc.typeName === `grpc.reflection.${version}.ServerReflection`)
            router.service(desc, implementation, options);
          return router;
        },
      };
      if (service !== undefined) serveReflection(only as ConnectRouter, indexServices([service]));
    });

  test.each(["v1", "v1alpha"] as const)("asks a server that has only %s", async (version) => {
    const { services, files } = await reflectFiles(serve(version), AbortSignal.timeout(10_000));
    expect(services).toEqual(["acme.printer.v1.Printer"]);
    expect([...files.keys()]).toEqual(["acme/printer/v1/printer.proto"]);
  });

  test("fails where there is no reflection", async () => {
    const none = createRouterTransport(() => undefined);
    await expect(reflectFiles(none, AbortSignal.timeout(10_000))).rejects.toThrow();
  });

  test("gives a server up that has more to describe than could be announced", async () => {
    const answer = (...files: Uint8Array[]) => ({
      messageResponse: { case: "fileDescriptorResponse" as const, value: { fileDescriptorProto: files } },
    });
    const endless = createRouterTransport(({ service }) => {
      let asked = 0;
      service(ServerReflection, {
        async *serverReflectionInfo(requests) {
          for await (const { messageRequest } of requests) {
            if (messageRequest.case === "listServices") {
              const listed = { service: [{ name: "a.A" }] };
              yield { messageResponse: { case: "listServicesResponse" as const, value: listed } };
            } else {
              // Each file imports one more.
              const file = { name: `f${asked}.proto`, dependency: [`f${++asked}.proto`] };
              yield answer(toBinary(FileDescriptorProtoSchema, create(FileDescriptorProtoSchema, file)));
            }
          }
        },
      });
    });
    await expect(reflectFiles(endless, AbortSignal.timeout(60_000))).rejects.toThrow("over the limit files of 200");
  });
});
