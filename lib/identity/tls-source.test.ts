import { chmodSync, mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeAll, beforeEach, expect, test, vi } from "vitest";
import { eventually } from "../../testkit/eventually.ts";
import { PrivateFileError } from "../files/private-file.ts";
import type { Authority } from "./authority.ts";
import { service, testAuthority, testMaterial } from "./testdata/certificates.ts";
import {
  createTlsHolder,
  staticTls,
  type TlsFiles,
  type TlsMaterial,
  TlsMaterialError,
  tlsFromFiles,
} from "./tls-source.ts";

let authority: Authority;
let first: TlsMaterial;
let second: TlsMaterial;
beforeAll(async () => {
  authority = await testAuthority();
  first = await testMaterial(authority, service("registry"));
  second = await testMaterial(authority, service("registry"));
});

let folder: string;
let opened: TlsFiles | undefined;
const logger = { info: vi.fn(), error: vi.fn() };
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "reeve-tls-"));
  write(first);
});
afterEach(() => {
  opened?.close();
  rmSync(folder, { recursive: true });
  vi.clearAllMocks();
});

const path = (name: string): string => join(folder, name);

function write({ cert, key, ca }: TlsMaterial): void {
  writeFileSync(path("cert.pem"), cert);
  writeFileSync(path("key.pem"), key, { mode: 0o600 });
  writeFileSync(path("ca.pem"), ca);
}

function open(): TlsFiles {
  const files = { certFile: path("cert.pem"), keyFile: path("key.pem"), caFile: path("ca.pem") };
  opened = tlsFromFiles({ ...files, checkMs: 60_000, logger });
  return opened;
}

test("is what the files hold", () => {
  expect(open().current()).toEqual(first);
});

test("is read again when the files change, and listeners are notified", () => {
  const tls = open();
  const changed = vi.fn();
  const stop = tls.onChange(changed);
  tls.check();
  expect(changed).not.toHaveBeenCalled();
  write(second);
  tls.check();
  expect(tls.current()).toEqual(second);
  expect(changed).toHaveBeenCalledOnce();
  stop();
  write(first);
  tls.check();
  expect(changed).toHaveBeenCalledOnce();
});

test("looks by itself", async () => {
  const files = { certFile: path("cert.pem"), keyFile: path("key.pem"), caFile: path("ca.pem") };
  const tls = tlsFromFiles({ ...files, checkMs: 5 });
  write(second);
  await eventually(() => expect(tls.current()).toEqual(second));
  tls.close();
});

test("keeps the old while the new is only half there, and says so once", () => {
  const tls = open();
  writeFileSync(path("cert.pem"), second.cert);
  tls.check();
  tls.check();
  expect(tls.current()).toEqual(first);
  expect(logger.error).toHaveBeenCalledOnce();
  write(second);
  tls.check();
  expect(tls.current()).toEqual(second);
});

test.each([
  ["cert.pem", "no certificate"],
  ["key.pem", "no key"],
  ["ca.pem", ""],
  ["ca.pem", "no authority"],
])("keeps the old where %s holds %j", (name, text) => {
  const tls = open();
  writeFileSync(path(name), text);
  tls.check();
  expect(tls.current()).toEqual(first);
  expect(logger.error).toHaveBeenCalledOnce();
});

test("keeps the old where a file is gone", () => {
  const tls = open();
  rmSync(path("key.pem"));
  tls.check();
  expect(tls.current()).toEqual(first);
});

test("sees a mounted secret being swapped", () => {
  for (const [name, { cert, key, ca }] of [
    ["1", first],
    ["2", second],
  ] as const) {
    mkdirSync(path(name));
    writeFileSync(path(`${name}/cert.pem`), cert);
    writeFileSync(path(`${name}/key.pem`), key, { mode: 0o440 });
    writeFileSync(path(`${name}/ca.pem`), ca);
  }
  symlinkSync("1", path("data"));
  const files = { certFile: path("data/cert.pem"), keyFile: path("data/key.pem"), caFile: path("data/ca.pem") };
  opened = tlsFromFiles({ ...files, checkMs: 60_000 });
  symlinkSync("2", path("next"));
  renameSync(path("next"), path("data"));
  opened.check();
  expect(opened.current()).toEqual(second);
});

test.each([0o400, 0o440, 0o600, 0o640])("takes a key of mode %o", (mode) => {
  chmodSync(path("key.pem"), mode);
  expect(open().current()).toEqual(first);
});

test.each([0o604, 0o644, 0o602])("refuses a key of mode %o, and says what to do", (mode) => {
  chmodSync(path("key.pem"), mode);
  expect(open).toThrow(PrivateFileError);
  expect(open).toThrow(`chmod o-rwx ${path("key.pem")}`);
});

test("names the file that is missing", () => {
  rmSync(path("ca.pem"));
  expect(open).toThrow(path("ca.pem"));
});

test("does not start with a key that is another certificate's", () => {
  writeFileSync(path("key.pem"), second.key);
  expect(open).toThrow(TlsMaterialError);
  expect(() => staticTls({ ...first, key: second.key })).toThrow(TlsMaterialError);
});

test("takes several authorities", async () => {
  const other = await testAuthority();
  const ca = `${authority.certificate}${other.certificate}`;
  expect(staticTls({ ...first, ca }).current().ca).toBe(ca);
});

test("a holder keeps what it has where the new does not fit together", () => {
  const holder = createTlsHolder(first);
  const changed = vi.fn();
  holder.onChange(changed);
  expect(() => holder.replace({ ...first, key: second.key })).toThrow(TlsMaterialError);
  expect(holder.current()).toBe(first);
  holder.replace(second);
  expect(holder.current()).toBe(second);
  expect(changed).toHaveBeenCalledOnce();
});
