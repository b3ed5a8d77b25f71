import { X509Certificate } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { createSecureContext } from "node:tls";
import { PrivateFileError, readPrivateFile } from "../files/private-file.ts";

/** What one side of a TLS connection shows and trusts, in PEM form. */
export interface TlsMaterial {
  /** The certificate, with intermediates after it where there are any. */
  readonly cert: string;
  /** The certificate's private key. */
  readonly key: string;
  /** The authorities that the other side's certificate may come from; several while they are being changed. */
  readonly ca: string;
}

/** Where servers and clients get their TLS material, which changes while they run. */
export interface TlsSource {
  current(): TlsMaterial;
  /** Calls back after each change, until the returned function is called. */
  onChange(listener: () => void): () => void;
}

/** TLS material that never changes. Throws TlsMaterialError where the parts do not fit together. */
export function staticTls(material: TlsMaterial): TlsSource {
  checkMaterial(material);
  return { current: () => material, onChange: () => () => undefined };
}

/** TLS material that its owner changes by hand. */
export interface TlsHolder extends TlsSource {
  /** From now on this. Throws TlsMaterialError, and keeps what it has, where the parts do not fit together. */
  replace(material: TlsMaterial): void;
}

/** TLS material that is replaced as a whole, as by a program that renews its own certificate. */
export function createTlsHolder(first: TlsMaterial): TlsHolder {
  checkMaterial(first);
  const listeners = new Set<() => void>();
  let material = first;
  return {
    current: () => material,
    onChange(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    replace(next) {
      checkMaterial(next);
      material = next;
      for (const listener of [...listeners]) listener();
    },
  };
}

/** TLS material that cannot be used; the message says why. */
export class TlsMaterialError extends Error {
  override name = "TlsMaterialError";
}

/** Throws TlsMaterialError where the key is not the certificate's, or a part does not parse. */
export function checkMaterial({ cert, key, ca }: TlsMaterial): void {
  try {
    createSecureContext({ cert, key, ca });
    new X509Certificate(ca); // an empty list of authorities is no error to OpenSSL
  } catch (cause: unknown) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new TlsMaterialError(`certificate, key and authorities do not fit together: ${why}`, { cause });
  }
}

export interface TlsFilesOptions {
  certFile: string;
  /** Must not be readable by others. */
  keyFile: string;
  caFile: string;
  /** How often the files are looked at, in milliseconds. Default 5000. */
  checkMs?: number;
  /** Logs a reload, and once each new state of the files that cannot be used. */
  logger?: TlsLogger;
}

export interface TlsLogger {
  info(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

export interface TlsFiles extends TlsSource {
  /** Looks at the files now. */
  check(): void;
  /** Stops looking. */
  close(): void;
}

const CHECK_MS = 5_000;

/**
 * TLS material from files, read again when they change. What is half written, or does not fit together, is not used: the
 * old material stays until the new is good. Throws PrivateFileError or TlsMaterialError where there is none to start with.
 */
export function tlsFromFiles({ certFile, keyFile, caFile, checkMs = CHECK_MS, logger }: TlsFilesOptions): TlsFiles {
  const files = [certFile, keyFile, caFile];
  const read = (): TlsMaterial => ({ cert: readText(certFile), key: readPrivateFile(keyFile), ca: readText(caFile) });
  let stamp = stampOf(files);
  const holder = createTlsHolder(read());

  const check = (): void => {
    const seen = stampOf(files);
    if (seen === stamp) return;
    stamp = seen;
    try {
      holder.replace(read());
      logger?.info({ certFile }, "the certificate was read again");
    } catch (err: unknown) {
      logger?.error({ err, certFile }, "the new certificate cannot be used; the old one stays in use");
    }
  };
  const timer = setInterval(check, checkMs);
  timer.unref();
  return { current: holder.current, onChange: holder.onChange, check, close: () => clearInterval(timer) };
}

function readText(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (cause: unknown) {
    const code = cause instanceof Error && "code" in cause ? String(cause.code) : "unknown error";
    throw new PrivateFileError(`The file ${path} cannot be read: ${code}.`, { cause });
  }
}

/** Changes whenever a file does. A mounted secret is a link into a folder that is swapped, which brings a new inode. */
function stampOf(paths: readonly string[]): string {
  return paths.map(stampOfFile).join(" ");
}

function stampOfFile(path: string): string {
  try {
    const stat = statSync(path, { bigint: true, throwIfNoEntry: false });
    // The mode as well: the change that an operator makes after reading the log.
    return stat === undefined ? "none" : `${stat.ino}:${stat.size}:${stat.mtimeNs}:${stat.mode}`;
  } catch (error: unknown) {
    return String(error);
  }
}
