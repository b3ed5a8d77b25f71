import { ConnectError } from "@connectrpc/connect";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import type { Authenticate, Principal } from "../auth/principal.ts";
import { fault, faultDetail } from "../fault/fault.ts";

/** A request that was let in with an Authorization header, and goes on. */
export interface OpenRequest {
  readonly authorization: string;
  /** Whom the header named when the request was let in. */
  readonly principal: Principal;
  /** Throws where a principal may not make this request, as when its roles have changed. */
  authorize(principal: Principal): void;
  /** Called at most once, when a new request with the same header would be refused. */
  onRefused(refusal: ConnectError): void;
}

/** The credential of one open request. */
export interface FollowedCredential {
  /** Why it is refused by now; undefined while it is valid. */
  readonly refusal: ConnectError | undefined;
  /** Throws the refusal, where there is one. Looks again where the last look is older than 100 ms. */
  check(): void;
  /** The request is over. Safe to repeat. */
  release(): void;
}

/** Asks again and again whether those who were let in would be let in still. */
export interface CredentialWatch {
  follow(request: OpenRequest): FollowedCredential;
}

/** How often the credentials of open requests are looked at, in milliseconds; a token file sees a change within a second. */
const LOOK_MS = 500;

/** A look that is younger counts for a message that comes in, in milliseconds. */
const FRESH_MS = 100;

interface Credential {
  readonly authorization: string;
  principal: Principal;
  /** When it was looked at last, in milliseconds of a monotonic clock. */
  askedMs: number;
  isAsking: boolean;
  readonly requests: Set<Followed>;
}

interface Followed {
  readonly request: OpenRequest;
  refusal: ConnectError | undefined;
}

/**
 * A request goes on for as long as a new one with the same header would be let in: not after the token was revoked, has
 * expired or has lost the role. Requests with one header are looked at once for all. Where a provider cannot be asked
 * (NOT_READY), what was known holds until the token expires; any other failure refuses.
 */
export function createCredentialWatch(authenticate: Authenticate, now: () => number = Date.now): CredentialWatch {
  const credentials = new Map<string, Credential>();
  let looking: NodeJS.Timeout | undefined;

  const look = (): void => {
    for (const credential of [...credentials.values()]) {
      if (credential.requests.size > 0) ask(credential, authenticate, now());
      else credentials.delete(credential.authorization);
    }
    if (credentials.size > 0) return;
    clearInterval(looking);
    looking = undefined;
  };
  const find = ({ authorization, principal }: OpenRequest): Credential => {
    const known = credentials.get(authorization);
    const askedMs = performance.now();
    if (known !== undefined) {
      // No open request depends on what was known before, and this is newer.
      if (known.requests.size === 0) {
        known.principal = principal;
        known.askedMs = askedMs;
      }
      return known;
    }
    const made = { authorization, principal, askedMs, isAsking: false, requests: new Set<Followed>() };
    credentials.set(authorization, made);
    looking ??= setInterval(look, LOOK_MS).unref();
    return made;
  };

  return {
    follow(request) {
      const credential = find(request);
      const followed: Followed = { request, refusal: undefined };
      credential.requests.add(followed);
      return {
        get refusal() {
          return followed.refusal;
        },
        check() {
          if (performance.now() - credential.askedMs > FRESH_MS) ask(credential, authenticate, now());
          if (followed.refusal !== undefined) throw followed.refusal;
        },
        release() {
          // The next look forgets a credential that nothing uses: one request often follows another.
          credential.requests.delete(followed);
        },
      };
    },
  };
}

/** One look. Where the answer takes a while, the requests are refused when it has come. */
function ask(credential: Credential, authenticate: Authenticate, now: number): void {
  if (credential.isAsking) return;
  credential.askedMs = performance.now();
  const { principal, authorization } = credential;
  if (principal.expireMs !== undefined && now >= principal.expireMs) {
    refuseAll(credential, tokenRefused("expired"));
    return;
  }
  try {
    const found = authenticate(authorization);
    if (!(found instanceof Promise)) {
      conclude(credential, found);
      return;
    }
    credential.isAsking = true;
    found
      .then(
        (later) => conclude(credential, later),
        (error: unknown) => onFailed(credential, error),
      )
      .finally(() => {
        credential.isAsking = false;
      });
  } catch (error: unknown) {
    onFailed(credential, error);
  }
}

function conclude(credential: Credential, found: Principal | undefined): void {
  if (found === credential.principal) return;
  if (found?.id !== credential.principal.id) {
    refuseAll(credential, tokenRefused("revoked"));
    return;
  }
  credential.principal = found;
  for (const followed of credential.requests) {
    try {
      followed.request.authorize(found);
    } catch (error: unknown) {
      refuse(followed, ConnectError.from(error));
    }
  }
}

function onFailed(credential: Credential, error: unknown): void {
  const reason = faultDetail(error)?.reason;
  if (reason === ErrorReason.NOT_READY) return;
  const message = "whether the token is still valid cannot be found out";
  const refusal =
    reason === undefined ? fault(ErrorReason.UNAUTHENTICATED, {}, { message, cause: error }) : ConnectError.from(error);
  refuseAll(credential, refusal);
}

function refuseAll({ requests }: Credential, refusal: ConnectError): void {
  for (const followed of [...requests]) refuse(followed, refusal);
}

function refuse(followed: Followed, refusal: ConnectError): void {
  if (followed.refusal !== undefined) return;
  followed.refusal = refusal;
  followed.request.onRefused(refusal);
}

function tokenRefused(why: "expired" | "revoked"): ConnectError {
  const message =
    why === "expired" ? "the token has expired; get a new one" : "the token was revoked; ask an operator for another";
  return fault(ErrorReason.TOKEN_REFUSED, { why }, { message });
}
