import type { IncomingMessage } from "node:http";
import type { Model } from "../providers/model.ts";
import type { ApiError } from "./api-error.ts";
import type { PlayedTurn, SeenResult } from "./script.ts";

/** A piece of a streamed answer, as it goes over the wire. */
export interface StreamPart {
  text: string;
  /** It holds something that the model wrote. */
  isContent: boolean;
  /** It says why the turn ended: what the model wrote is before it. */
  isEnd: boolean;
}

/** Makes an id that starts with its kind. */
export type NewId = (kind: string) => string;

/** How a provider's API looks on the wire. */
export interface WireFormat<Request> {
  /** Throws ApiError for a request that is for something else, or whose key is not the one that is given. */
  checkAccess(request: IncomingMessage, apiKey: string | undefined): void;
  /** Refuses what the real API refuses, as far as an agent's loop can get it wrong. Throws ApiError. */
  checkRequest(body: unknown): Request;
  /** Which turn of a script a request asks for, from 0. */
  turnIndex(request: Request): number;
  /** Every tool result of the conversation, in order. */
  resultsIn(request: Request): readonly SeenResult[];
  errorBody(error: ApiError, requestId: string): object;
  stream(turn: PlayedTurn, request: Request, newId: NewId): Iterable<StreamPart>;
  /** The answer without streaming; undefined where the request asks for a stream. */
  whole(turn: PlayedTurn, request: Request, newId: NewId): object | undefined;
  newUseId(newId: NewId): string;
  /** The adapter for a server at `url`. */
  adapter(url: string, apiKey: string): Promise<Model>;
}
