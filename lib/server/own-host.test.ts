import { request } from "node:http";
import { connect as connectH2 } from "node:http2";
import { expect, onTestFinished, test } from "vitest";
import { createLogger } from "../log/log.ts";
import { createProbe } from "./probe.ts";
import { startEcho } from "./server.fixture.ts";

function statusH1(url: string, path: string, headers: Record<string, string>): Promise<number | undefined> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    request({ host: hostname, port, path, headers, agent: false }, (answer) => {
      answer.resume();
      resolve(answer.statusCode);
    })
      .on("error", reject)
      .end();
  });
}

function statusH2(url: string, path: string, authority: string): Promise<number | undefined> {
  const session = connectH2(url);
  return new Promise((resolve, reject) => {
    const stream = session.request({ ":path": path, ":authority": authority });
    stream.on("response", (head) => resolve(head[":status"]));
    stream.on("error", reject);
    stream.resume();
    stream.end();
  }).finally(() => session.destroy()) as Promise<number | undefined>;
}

test("a loopback port answers no request under another name, unless it shows a token", async () => {
  const { server, url } = await startEcho();
  onTestFinished(() => server.close(0));
  const probe = await createProbe({
    health: server.health,
    metrics: server.metrics,
    logger: createLogger({ service: "test", level: "silent" }),
  });
  onTestFinished(() => probe.close());
  for (const path of ["/metrics", "/healthz"]) {
    for (const where of [url, probe.url]) {
      for (const host of ["localhost", "localhost:1", "127.0.0.1:7400", "127.9.9.9", "[::1]:7400", "LOCALHOST"]) {
        expect([host, await statusH1(where, path, { host })]).toEqual([host, 200]);
        expect([host, await statusH2(where, path, host)]).toEqual([host, 200]);
      }
      for (const host of [
        "evil.example",
        "evil.example:7400",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "10.0.0.1",
      ]) {
        expect([host, await statusH1(where, path, { host })]).toEqual([host, 400]);
        expect([host, await statusH2(where, path, host)]).toEqual([host, 400]);
      }
      expect(await statusH1(where, path, { host: "evil.example", authorization: "Bearer agent-token" })).toBe(200);
    }
  }
});

test("a port of the network answers under any name", async () => {
  const { server } = await startEcho({}, { host: "0.0.0.0", allowPlaintext: true });
  onTestFinished(() => server.close(0));
  const url = `http://127.0.0.1:${server.port}`;
  expect(await statusH1(url, "/healthz", { host: "registry.reeve.svc:7400" })).toBe(200);
  expect(await statusH1(url, "/healthz", { host: "[" })).toBe(400);
});
