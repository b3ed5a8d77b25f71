import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { reportUsage } from "./report-usage.ts";
import { spawnTrue } from "./true.ts";

// POST JSON to a bare node:http server: what a device agent without any gate does.
const server = createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on("data", (chunk: Buffer) => chunks.push(chunk));
  request.on("end", () => {
    void (async () => {
      const { capability } = JSON.parse(Buffer.concat(chunks).toString()) as { capability: string };
      const result = capability === "exec" ? await spawnTrue() : { text: "" };
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify({ ok: true, result }));
    })();
  });
});
server.keepAliveTimeout = 60_000;
server.listen(0, "127.0.0.1", () => reportUsage({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }));
