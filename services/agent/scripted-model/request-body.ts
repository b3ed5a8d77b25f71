import type { IncomingMessage } from "node:http";
import { ApiError, invalid } from "./api-error.ts";

const MAX_BODY_BYTES = 32 * 1024 * 1024;

/** Throws ApiError for a request that is not a POST to the path. */
export function checkPath({ method, url = "" }: IncomingMessage, expected: string): void {
  const [path] = url.split("?");
  if (method !== "POST" || path !== expected) throw new ApiError(404, `Not found: ${method} ${path}`);
}

/** The bearer token of a request. */
export function bearerOf({ headers }: IncomingMessage): string | undefined {
  return /^Bearer (.+)$/u.exec(headers.authorization ?? "")?.[1];
}

/** The body as JSON, of at most 32 MiB. Throws ApiError. */
export async function readJson(request: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > MAX_BODY_BYTES) throw new ApiError(413, "Request exceeds the maximum size");
    chunks.push(chunk);
  }
  try {
    return JSON.parse(Buffer.concat(chunks).toString());
  } catch {
    throw invalid("The request body is not valid JSON");
  }
}
