import { createPublicKey } from "node:crypto";
import { readFileSync } from "node:fs";
import { isIP } from "node:net";
import type { Command } from "commander";
import { chainOf, createAuthority, issueCertificate } from "../../lib/identity/authority.ts";
import { generateTlsKey, tlsKeyToPem } from "../../lib/identity/request.ts";
import { DEFAULT_TRUST_DOMAIN, formatIdentity, type Identity, parseIdentity } from "../../lib/identity/spiffe.ts";
import type { CommandContext } from "../command-context.ts";
import { UsageError } from "../errors/usage-error.ts";
import { parseDuration } from "../flags/duration.ts";
import { withJson } from "../list-options.ts";
import { visibleLine } from "../print/escape.ts";
import { jsonDocument } from "../print/json.ts";
import { gather } from "../repeatable.ts";
import { certificateLines, describeCertificates } from "../service-ca/describe.ts";
import { authorityFiles, certificateFiles, readAuthority, requireNew, writeFiles } from "../service-ca/files.ts";

interface InitFlags {
  out: string;
  trustDomain: string;
  ttl: string;
  json?: true;
}

interface IssueFlags extends InitFlags {
  ca: string;
  service?: string;
  device?: string;
  dns: string[];
  ip: string[];
}

/** Registers `reeve service-ca` with init, issue and show: the certificates of the control plane, made without a server. */
export function registerServiceCa(program: Command, context: CommandContext): void {
  const ca = program
    .command("service-ca")
    .description(
      "Make the authority and the certificates that the services show each other. Devices have an authority of their own, the device CA, and get certificates by enrolling.",
    );
  withTrust(ca.command("init"), "3650d")
    .description(
      "Make an authority: ca.crt, which everybody may have, and ca.key, which is best kept offline. It needs no server.",
    )
    .requiredOption("--out <folder>", "where to write the two")
    .action((flags: InitFlags) => init(flags, context));
  withTrust(ca.command("issue"), "365d")
    .description(
      "Make a key and a certificate for a service: tls.crt, tls.key and ca.crt, for REEVE_TLS_CERT_FILE,\n" +
        "REEVE_TLS_KEY_FILE and REEVE_TLS_CA_FILE.",
    )
    .requiredOption("--ca <folder>", "the folder of `reeve service-ca init`")
    .option("--service <name>", "which service shows it: registry, policy, or another name such as nats or postgres")
    .option("--device <id>", "in place of a service: a device that the registry dials, by its id such as dev-1f3c…")
    .option("--dns <name>", "a DNS name under which it is reached; can be repeated", gather, [])
    .option("--ip <address>", "an IP address under which it is reached; can be repeated", gather, [])
    .requiredOption("--out <folder>", "where to write the three")
    .action((flags: IssueFlags) => issue(flags, context));
  withJson(ca.command("show").argument("<file>", "a file with certificates, PEM"))
    .description("Show whom certificates name, who signed them, and how long they are valid.")
    .action((file: string, { json }: { json?: true }) => show(file, json === true, context));
}

function withTrust(command: Command, ttl: string): Command {
  return withJson(command)
    .option("--ttl <time>", "how long it is valid", ttl)
    .option("--trust-domain <name>", "the trust domain of the identities", DEFAULT_TRUST_DOMAIN);
}

async function init({ out, trustDomain, ttl, json }: InitFlags, context: CommandContext): Promise<void> {
  const files = authorityFiles(out);
  requireNew(Object.values(files));
  identityIn(trustDomain, { service: "registry" });
  const made = await createAuthority({
    commonName: "reeve control plane",
    trustDomain,
    ttlMs: parseDuration(ttl, "--ttl"),
    now: context.now(),
  });
  await writeFiles(out, { [files.key]: tlsKeyToPem(made.key) }, { [files.certificate]: made.certificate });
  if (json) return void context.stdout.write(jsonDocument(files));
  context.stdout.write(`${files.certificate}\n${files.key}\n`);
}

async function issue(flags: IssueFlags, context: CommandContext): Promise<void> {
  const { ca, dns, ip, out, trustDomain, ttl, json } = flags;
  const identity = identityIn(trustDomain, flags);
  for (const name of dns) requireDns(name);
  for (const address of ip)
    if (isIP(address) === 0) throw new UsageError(`--ip: ${JSON.stringify(address)} is no IP address`);
  const files = certificateFiles(out);
  requireNew(Object.values(files));
  const authority = readAuthority(ca);
  const key = generateTlsKey();
  const certificate = await issueCertificate(authority, createPublicKey(key), {
    identity,
    dns,
    ips: ip,
    ttlMs: parseDuration(ttl, "--ttl"),
    now: context.now(),
  });
  const open = { [files.certificate]: chainOf(certificate, authority), [files.authorities]: authority.certificate };
  await writeFiles(out, { [files.key]: tlsKeyToPem(key) }, open);
  if (json) return void context.stdout.write(jsonDocument({ identity: formatIdentity(identity), ...files }));
  context.stdout.write(
    `REEVE_TLS_CERT_FILE=${files.certificate}\nREEVE_TLS_KEY_FILE=${files.key}\nREEVE_TLS_CA_FILE=${files.authorities}\n`,
  );
}

function show(file: string, json: boolean, context: CommandContext): void {
  const certificates = readCertificates(file);
  if (json) return void context.stdout.write(jsonDocument({ certificates: certificates.map((one) => ({ ...one })) }));
  context.stdout.write(certificates.map((one) => visible(certificateLines(one, context.now()))).join("\n"));
}

function readCertificates(file: string) {
  try {
    const found = describeCertificates(readFileSync(file, "utf8"));
    if (found.length > 0) return found;
  } catch (cause: unknown) {
    throw new UsageError(`${file} cannot be read as certificates`, [], { cause });
  }
  throw new UsageError(`${file} holds no certificate in PEM form`);
}

function identityIn(trustDomain: string, { service, device }: { service?: string; device?: string }): Identity {
  if ((service === undefined) === (device === undefined)) {
    throw new UsageError("whose certificate it is: one of --service and --device is needed");
  }
  const path = service === undefined ? `device/${device}` : `service/${service}`;
  const identity = parseIdentity(`spiffe://${trustDomain}/${path}`);
  if (identity !== undefined) return identity;
  throw new UsageError(`spiffe://${trustDomain}/${path} is no identity`, [
    "a trust domain is small letters, digits, dots and dashes; a service's name begins with a letter; a device's id is dev- and 16 hex digits",
  ]);
}

function requireDns(name: string): void {
  if (/^(\*\.)?[A-Za-z0-9_]([A-Za-z0-9_.-]{0,251}[A-Za-z0-9])?$/.test(name)) return;
  throw new UsageError(`--dns: ${JSON.stringify(name)} is no DNS name`);
}

function visible(text: string): string {
  return text.split("\n").map(visibleLine).join("\n");
}
