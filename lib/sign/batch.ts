import { create, toBinary } from "@bufbuild/protobuf";
import { BatchHeadSchema, type Signed, SignedSchema } from "../../gen/ts/reeve/common/v1/signed_pb.ts";
import { createCompany } from "../async/company.ts";
import { leafHash } from "../merkle/hash.ts";
import { createTree } from "../merkle/tree.ts";
import { signEnvelope } from "./dsse.ts";
import type { SigningKey } from "./keys.ts";

/** The DSSE payload type of a batch's head; what the statements are stands inside the head. */
export const BATCH_HEAD_TYPE = "application/vnd.reeve.batch-head.v1";

/** The most statements that one signature may cover. */
export const MAX_BATCH = 1024;

/** What a batch signer needs. */
export interface BatchSignerOptions {
  key: SigningKey;
  /** What the statements are, such as "application/vnd.reeve.grant.v1". Bound into the signature. */
  statementType: string;
  /** Signs at once when so many wait. Default and upper limit: 1024. */
  maxBatch?: number;
}

/** Signs statements, many with one signature. */
export interface BatchSigner {
  /**
   * Signs a statement together with all others that come at the same time. The bytes are carried as
   * they are, not copied: leave them unchanged. The head is shared by the whole batch. Rejects only where signing fails.
   */
  readonly sign: (statement: Uint8Array) => Promise<Signed>;
}

/**
 * A signer that gathers statements (see createCompany), puts them under one Merkle root (RFC 6962 hashing) and signs that
 * root once, because a signature costs as much as a hundred hashes. One that comes alone has an empty path. Throws RangeError for a maxBatch outside 1..1024.
 */
export function createBatchSigner(options: BatchSignerOptions): BatchSigner {
  const { key, statementType, maxBatch = MAX_BATCH } = options;
  if (!(maxBatch >= 1 && maxBatch <= MAX_BATCH)) throw new RangeError(`maxBatch is from 1 to ${MAX_BATCH}`);
  const company = createCompany();
  let waiting: Waiting[] = [];
  const flush = (): void => {
    const batch = waiting;
    waiting = [];
    company.came(batch.length);
    signAll(batch, key, statementType);
  };
  return {
    sign(statement) {
      const { promise, resolve, reject } = Promise.withResolvers<Signed>();
      waiting.push({ statement, resolve, reject });
      if (waiting.length >= maxBatch) flush();
      else if (waiting.length === 1) company.gather(flush);
      return promise;
    },
  };
}

interface Waiting {
  statement: Uint8Array;
  resolve(signed: Signed): void;
  reject(reason: unknown): void;
}

function signAll(batch: readonly Waiting[], key: SigningKey, statementType: string): void {
  if (batch.length === 0) return;
  try {
    const statements = batch.map((waiting) => waiting.statement);
    for (const [index, signed] of signBatch(key, statementType, statements).entries()) batch[index]?.resolve(signed);
  } catch (e: unknown) {
    for (const waiting of batch) waiting.reject(e);
  }
}

function signBatch(key: SigningKey, statementType: string, statements: readonly Uint8Array[]): Signed[] {
  const tree = createTree(statements.map(leafHash));
  const bytes = create(BatchHeadSchema, { statementType, size: statements.length, root: tree.root });
  const head = signEnvelope(key, BATCH_HEAD_TYPE, toBinary(BatchHeadSchema, bytes));
  return statements.map((statement, index) => create(SignedSchema, { statement, index, path: tree.path(index), head }));
}
