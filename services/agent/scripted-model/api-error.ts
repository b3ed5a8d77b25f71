import type { JsonObject } from "@bufbuild/protobuf";

/** The types of errors that the Messages API answers with, by status. */
const TYPES: Record<number, string> = {
  400: "invalid_request_error",
  401: "authentication_error",
  404: "not_found_error",
  413: "request_too_large",
  429: "rate_limit_error",
  500: "api_error",
  529: "overloaded_error",
};

/** An error of the Messages API (https://platform.claude.com/docs/en/api/errors). */
export class ApiError extends Error {
  override readonly name = "ApiError";
  readonly status: number;
  readonly type: string;
  readonly headers: Record<string, string>;

  constructor(status: number, message: string, options: { type?: string; headers?: Record<string, string> } = {}) {
    super(message);
    this.status = status;
    this.type = options.type ?? TYPES[status] ?? "api_error";
    this.headers = options.headers ?? {};
  }
}

/** The body of an error, alone or as the data of an error event. */
export function errorBody(error: Pick<ApiError, "type" | "message">, requestId: string): object {
  return { type: "error", error: { type: error.type, message: error.message }, request_id: requestId };
}

/** A request that the API refuses as it is. */
export function invalid(message: string): ApiError {
  return new ApiError(400, message);
}

/** The value as an object. Throws ApiError naming the path. */
export function objectAt(value: unknown, path: string): JsonObject {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw invalid(`${path}: Input should be a valid dictionary`);
  }
  return value as JsonObject;
}
