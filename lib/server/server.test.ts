import { createClient } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { faultDetail } from "../fault/fault.ts";
import { Echo } from "./echo.fixture.ts";
import { startEcho } from "./server.fixture.ts";
import { transportFor } from "./transports.fixture.ts";

test.each(["0.0.0.0", "::", "10.1.2.3", "example.org", "127.0.0.1.example.org"])(
  "refuses to listen on %s in cleartext and says what to do",
  async (host) => {
    const error: unknown = await startEcho({}, { host }).catch((cause: unknown) => cause);
    expect(faultDetail(error)).toMatchObject({ reason: ErrorReason.INVALID_INPUT, metadata: { field: "host" } });
    expect(String(error)).toContain("allow plaintext");
  },
);

test("listens beyond loopback where plaintext is allowed", async () => {
  const { server } = await startEcho({}, { host: "0.0.0.0", allowPlaintext: true });
  expect((await fetch(`http://127.0.0.1:${server.port}/healthz`)).status).toBe(200);
  await server.close(0);
});

test("says where it listens", async () => {
  const { server } = await startEcho();
  expect(server).toMatchObject({ url: `http://127.0.0.1:${server.port}`, host: "127.0.0.1" });
  await server.close(0);
});

test("rejects where the port is taken", async () => {
  const { server } = await startEcho();
  await expect(startEcho({}, { port: server.port })).rejects.toMatchObject({ code: "EADDRINUSE" });
  await server.close(0);
});

test("takes another way to find out who may call", async () => {
  const { server, url } = await startEcho({}, { access: () => ({ public: true, roles: [] }) });
  const client = createClient(Echo, transportFor(["connect", "2", "json"], url, ""));
  await expect(client.forgotten({ text: "x" })).resolves.toMatchObject({ text: "x" });
  await server.close(0);
});

test("lets no caller in while it cannot find out who calls", async () => {
  const failing = () => Promise.reject(new Error("the token file is damaged"));
  const { server, url, lines } = await startEcho({}, { authenticate: failing });
  const error: unknown = await createClient(Echo, transportFor(["grpc", "2", "binary"], url))
    .say({})
    .catch((cause: unknown) => cause);
  expect(faultDetail(error)?.reason).toBe(ErrorReason.INTERNAL);
  expect(String(error)).not.toContain("token file");
  expect(lines).toContainEqual(
    expect.objectContaining({ level: "error", err: expect.objectContaining({ message: "the token file is damaged" }) }),
  );
  await server.close(0);
});
