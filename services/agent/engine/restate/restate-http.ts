import { request as httpRequest } from "node:http";
import { request as httpsRequest } from "node:https";

/** Where an API of Restate's is: a URL, or the path of a Unix socket. */
export type RestateAddress = { url: string } | { socketPath: string };

/** An answer of Restate's. */
export interface RestateAnswer {
  status: number;
  body: string;
}

/** How long one request may take, in milliseconds. */
const REQUEST_MS = 10_000;

/** The most bytes of an answer that are read. */
const MAX_ANSWER = 1024 * 1024;

/** Sends one request with a JSON body. Rejects where there is no answer. */
export function restateRequest(
  address: RestateAddress,
  { method, path, body }: { method: "GET" | "POST"; path: string; body?: unknown },
): Promise<RestateAnswer> {
  const target = "url" in address ? new URL(address.url) : undefined;
  const open = target?.protocol === "https:" ? httpsRequest : httpRequest;
  const where =
    target === undefined
      ? { socketPath: "socketPath" in address ? address.socketPath : "" }
      : { host: target.hostname.replace(/^\[|\]$/gu, ""), port: target.port === "" ? undefined : target.port };
  const text = body === undefined ? undefined : JSON.stringify(body);
  const headers = text === undefined ? {} : { "content-type": "application/json" };
  return new Promise((resolve, reject) => {
    const signal = AbortSignal.timeout(REQUEST_MS);
    const sent = open({ ...where, method, path, headers, signal }, (response) => {
      const chunks: Buffer[] = [];
      let length = 0;
      response.on("data", (chunk: Buffer) => {
        length += chunk.length;
        if (length <= MAX_ANSWER) chunks.push(chunk);
      });
      response.on("error", reject);
      response.on("end", () =>
        resolve({ status: response.statusCode ?? 0, body: Buffer.concat(chunks).toString("utf8") }),
      );
    });
    sent.on("error", reject);
    sent.end(text);
  });
}

/** Sends a request and throws unless it was accepted. */
export async function restateSend(address: RestateAddress, path: string, body?: unknown): Promise<RestateAnswer> {
  const answer = await restateRequest(address, { method: "POST", path, body });
  if (answer.status >= 200 && answer.status < 300) return answer;
  throw new Error(`restate answered ${answer.status}: ${answer.body.slice(0, 500)}`);
}
