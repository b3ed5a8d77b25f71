import { existsSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { dirname } from "node:path";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { type Command, Option } from "commander";
import { roleFromName, roleNames } from "../../lib/auth/roles.ts";
import { isToolName, type TokenEntry } from "../../lib/auth/token.ts";
import { createTokenFile, type TokenFile } from "../../lib/auth/token-file.ts";
import type { CommandContext } from "../command-context.ts";
import { UsageError } from "../errors/usage-error.ts";
import { parseDuration } from "../flags/duration.ts";
import { noteListed } from "../list-notes.ts";
import { withJson } from "../list-options.ts";
import { tokenFileForChange } from "../operator/token-file-guard.ts";
import { jsonDocument } from "../print/json.ts";
import { listTable } from "../print/table.ts";
import { ageText } from "../print/time.ts";
import { tokensPath } from "../profile.ts";
import { gather } from "../repeatable.ts";

interface CreateFlags {
  name: string;
  role: string[];
  expires?: string;
  tool: string[];
  json?: true;
}

/** Registers `reeve token` with create, list and revoke: they edit the token file of this machine's control plane. */
export function registerToken(program: Command, context: CommandContext): void {
  const token = program
    .command("token")
    .description("Create, list and revoke the tokens that may call this machine's control plane.");
  const role = new Option("--role <role>", "what its holder may be; may be repeated")
    .argParser(collectRole)
    .makeOptionMandatory();
  withJson(token.command("create").addOption(role))
    .description("Create a token and print it, once. A running control plane knows it at once.")
    .requiredOption("--name <name>", "whose it is")
    .option("--tool <name>", "a tool that it may call; may be repeated. Default: all", gather, [])
    .option("--expires <duration>", "how long it is valid, such as 30d; default: for ever")
    .action((flags: CreateFlags) => create(flags, context));
  withJson(token.command("list").description("List the tokens, without their secrets.")).action(
    (flags: { json?: true }) => list(flags.json === true, context),
  );
  token
    .command("revoke")
    .description("Revoke a token: it is refused from then on.")
    .argument("<id>", "the token's id, as `reeve token list` shows it")
    .action((id: string) => revoke(id, context));
}

function collectRole(name: string, before: string[] | undefined): string[] {
  if (roleFromName(name) === undefined)
    throw new UsageError(`--role: ${JSON.stringify(name)} is none of: ${roleNames.join(", ")}`);
  return [...(before ?? []), name];
}

async function create(flags: CreateFlags, context: CommandContext): Promise<void> {
  const path = tokensPath(context.env);
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  const expires =
    flags.expires === undefined ? undefined : new Date(context.now() + parseDuration(flags.expires, "--expires"));
  const roles = flags.role.flatMap((name) => roleFromName(name) ?? []);
  const tokens = await tokenFileForChange(context);
  const { token, entry } = tokens.issueToken({
    name: flags.name,
    roles,
    ...(expires && { expires }),
    ...(flags.tool.length > 0 && { tools: flags.tool.map(toolName) }),
  });
  if (flags.json) return void context.stdout.write(jsonDocument({ token, ...publicEntry(entry) }));
  context.stdout.write(`${token}\n`);
  const until = entry.expires === undefined ? "" : `, until ${entry.expires}`;
  context.stderr.write(
    `reeve: ${entry.id} for ${entry.name} (${entry.roles.join(", ")})${until}; it is not shown again\n`,
  );
}

function toolName(name: string): string {
  if (isToolName(name)) return name;
  throw new UsageError(`--tool: ${JSON.stringify(name)} is no name of a tool`, ["`reeve tool list` shows the names"]);
}

function list(json: boolean, context: CommandContext): void {
  const entries = tokenFile(context).listTokens();
  if (json) return void context.stdout.write(jsonDocument({ tokens: entries.map(publicEntry) }));
  const rows = entries.map(({ id, name, roles, tools, created, expires }) => [
    id,
    name,
    roles.join(", "),
    tools?.join(", ") ?? "all",
    since(created, context),
    expires === undefined ? "never" : since(expires, context),
  ]);
  context.stdout.write(
    listTable(["ID", "NAME", "ROLES", "TOOLS", "CREATED", "EXPIRES"], rows, context, { keep: ["ID"] }),
  );
  noteListed({ things: "tokens", shown: rows.length, nextPageToken: "" }, context);
}

function since(time: string, { now }: CommandContext): string {
  return ageText(timestampFromDate(new Date(time)), now());
}

async function revoke(id: string, context: CommandContext): Promise<void> {
  tokenFile(context); // says where there is no file
  if (!(await tokenFileForChange(context)).revokeToken(id))
    throw new UsageError(`there is no token ${JSON.stringify(id)}`);
  context.stderr.write(`reeve: ${id} is revoked\n`);
}

function tokenFile({ env }: CommandContext): TokenFile {
  const path = tokensPath(env);
  if (existsSync(path)) return createTokenFile(path);
  throw new UsageError(`there is no token file ${path}`, ["`reeve up` makes it, and so does `reeve token create`"]);
}

/** All but the hash. */
function publicEntry({ id, name, roles, tools, created, expires }: TokenEntry) {
  return { id, name, roles: [...roles], tools: tools ? [...tools] : null, created, expires: expires ?? null };
}
