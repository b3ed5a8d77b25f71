import type { MessageInitShape } from "@bufbuild/protobuf";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import type {
  Http,
  HttpGetRequest,
  HttpGetResponseSchema,
  HttpPostRequest,
  HttpPostResponseSchema,
} from "../../../gen/ts/reeve/tools/v1/http_pb.ts";
import { fault } from "../../../lib/fault/fault.ts";
import type { ConnectOptions } from "./http/options.ts";
import { bodyOf, headersFor, parseUrl } from "./http/request.ts";
import { type Answer, isEncrypted, send } from "./http/send.ts";
import type { ToolContext, ToolFamily } from "./tool.ts";

const DEFAULT_BYTES = 65_536;

/** How many redirects are followed. */
const MAX_REDIRECTS = 5;

const REDIRECTS = new Set([301, 302, 303, 307, 308]);

/** Requests to the hosts that the owner named. */
export function createHttpTools(options: ConnectOptions = {}): ToolFamily<typeof Http> {
  return {
    get: (input, context) => get(options, input, context),
    post: (input, context) => post(options, input, context),
  };
}

async function get(
  options: ConnectOptions,
  { url: text, headers, maxBytes }: HttpGetRequest,
  context: ToolContext,
): Promise<MessageInitShape<typeof HttpGetResponseSchema>> {
  const first = parseUrl(text, "url");
  let url = first;
  for (let redirects = 0; ; redirects++) {
    // What is meant for one server is not for another that it names.
    const sent = url.origin === first.origin ? headersFor(url, headers, context) : {};
    const request = { url, field: "url", method: "GET", headers: sent, maxBytes: maxBytes || DEFAULT_BYTES } as const;
    const answer = await send(context, request, options);
    const next = redirectOf(answer, url);
    if (next === undefined) {
      const { status, truncated } = answer;
      return { status, truncated, url: url.href, headers: answer.headers, ...bodyOf(answer.body, truncated, context) };
    }
    if (redirects === MAX_REDIRECTS) throw refusedRedirect(url, `leads on after ${MAX_REDIRECTS} redirects`);
    url = next;
  }
}

/** Where an answer leads; undefined where it does not. */
function redirectOf({ status, headers }: Answer, from: URL): URL | undefined {
  const { location } = headers;
  if (!REDIRECTS.has(status) || location === undefined) return undefined;
  const next = URL.parse(location, from);
  if (next === null || !/^https?:$/.test(next.protocol) || next.username !== "" || next.password !== "")
    throw refusedRedirect(from, "redirects to something that is no plain http or https address");
  if (from.protocol === "https:" && next.protocol === "http:")
    throw refusedRedirect(from, "redirects from https to http, where others can read it");
  next.hash = "";
  return next;
}

function refusedRedirect(from: URL, why: string): Error {
  const message = `${from.protocol}//${from.host} ${why}`;
  return fault(ErrorReason.TOOL_FAILED, { host: from.hostname.slice(0, 253), errno: "EREDIRECT" }, { message });
}

async function post(
  options: ConnectOptions,
  { url: text, body, contentType, headers, maxBytes }: HttpPostRequest,
  context: ToolContext,
): Promise<MessageInitShape<typeof HttpPostResponseSchema>> {
  const url = parseUrl(text, "url");
  const use = { field: "body", host: url.hostname, isEncrypted: isEncrypted(url) };
  const answer = await send(
    context,
    {
      url,
      field: "url",
      method: "POST",
      headers: { "content-type": contentType || "application/json", ...headersFor(url, headers, context) },
      body: context.secrets.resolve(body, use),
      maxBytes: maxBytes || DEFAULT_BYTES,
    },
    options,
  );
  const { status, truncated } = answer;
  return { status, truncated, headers: answer.headers, ...bodyOf(answer.body, truncated, context) };
}
