import type { IncomingMessage } from "node:http";
import { ApiError, invalid } from "./api-error.ts";

const MAX_BODY_BYTES = 32 * 1024 * 1024;

/**
 * Lets a request in that is for the Messages API and has a key and a version, as the API does. Throws ApiError.
 *
 * @param apiKey the only key that is let in; undefined lets any in.
 */
export function checkAccess({ headers, method, url = "" }: IncomingMessage, apiKey: string | undefined): void {
  const [path] = url.split("?");
  if (method !== "POST" || path !== "/v1/messages") throw new ApiError(404, `Not found: ${method} ${path}`);
  const bearer = /^Bearer (.+)$/u.exec(headers.authorization ?? "")?.[1];
  const key = headers["x-api-key"] ?? bearer;
  if (key === undefined || key === "") throw new ApiError(401, "x-api-key header is required");
  if (apiKey !== undefined && key !== apiKey) throw new ApiError(401, "invalid x-api-key");
  if (!/^\d{4}-\d{2}-\d{2}$/u.test(String(headers["anthropic-version"]))) {
    throw invalid("anthropic-version: header is required");
  }
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
