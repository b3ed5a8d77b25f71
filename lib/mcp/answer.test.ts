import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test, vi } from "vitest";
import { createAnswer } from "./answer.ts";

const message = { jsonrpc: "2.0", id: 1, result: {} };

async function answered(write: (response: ServerResponse) => void | Promise<void>): Promise<Response> {
  const server = createServer((_request, response) => void write(response));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  return fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
}

test("is JSON where nothing came before, with its status", async () => {
  const response = await answered((to) => createAnswer(to, new AbortController().signal).end(400, message));
  expect([response.status, response.headers.get("content-type")]).toEqual([400, "application/json"]);
  expect(await response.json()).toEqual(message);
});

test("is a stream of events from the first notification on", async () => {
  const response = await answered(async (to) => {
    const answer = createAnswer(to, new AbortController().signal);
    await answer.notify("notifications/progress", { progress: 1 });
    answer.end(200, message);
  });
  expect(response.headers.get("content-type")).toBe("text/event-stream");
  const progress = { jsonrpc: "2.0", method: "notifications/progress", params: { progress: 1 } };
  const events = [progress, message].map((one) => `event: message\ndata: ${JSON.stringify(one)}\n\n`);
  expect(await response.text()).toBe(events.join(""));
});

test("is kept open by a comment while nothing comes", async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  onTestFinished(() => void vi.useRealTimers());
  const response = await answered((to) => {
    const answer = createAnswer(to, new AbortController().signal);
    vi.advanceTimersByTime(15_000);
    answer.end(200, message);
  });
  expect(await response.text()).toMatch(/^: keepalive\n\nevent: message\n/);
});
