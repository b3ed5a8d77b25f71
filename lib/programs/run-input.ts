import { isMessage, type Message } from "@bufbuild/protobuf";
import { DockerExecRequestSchema } from "../../gen/ts/reeve/tools/v1/docker_pb.ts";
import { ExecRequestSchema } from "../../gen/ts/reeve/tools/v1/shell_pb.ts";

/** What is wrong with one field of an input. */
export interface InputProblem {
  field: string;
  message: string;
}

/** Names that choose which code a program loads, runs or trusts. */
const RESERVED_NAMES = new Set(
  `PATH HOME SHELL USER LOGNAME ENV BASH_ENV IFS CDPATH GLOBIGNORE SHELLOPTS BASHOPTS PS4 PROMPT_COMMAND
  NODE_OPTIONS NODE_PATH NODE_EXTRA_CA_CERTS JAVA_TOOL_OPTIONS _JAVA_OPTIONS JDK_JAVA_OPTIONS CLASSPATH
  EDITOR VISUAL PAGER MANPAGER BROWSER LESSOPEN LESSCLOSE GCONV_PATH LOCPATH NLSPATH HOSTALIASES RES_OPTIONS
  TERMINFO TERMINFO_DIRS XDG_CONFIG_HOME XDG_CONFIG_DIRS XDG_RUNTIME_DIR KUBECONFIG SSL_CERT_FILE
  SSL_CERT_DIR OPENSSL_CONF CURL_HOME CURL_CA_BUNDLE ZDOTDIR AWS_CONFIG_FILE AWS_SHARED_CREDENTIALS_FILE`.split(/\s+/),
);

/** Families of such names. */
const RESERVED_PREFIXES =
  "__ LD_ DYLD_ BASH_FUNC_ PYTHON PERL RUBY GEM_ GIT_ SSH_ DOCKER_ MALLOC_ GLIBC_ LUA_ PHP REEVE_".split(" ");

/**
 * What no device would run, in the input of a tool that runs programs: a blank program, a relative path to one, a
 * variable that may not be set. The rules of the schema cannot say it. It is checked where the input is, so that no
 * person is asked about a call that the device then refuses; the device checks it again. Empty for other inputs.
 */
export function runProblems(input: Message): InputProblem[] {
  if (isMessage(input, ExecRequestSchema))
    return [...programProblems(input.argv, isProgram), ...reservedVariables(input.env)];
  if (isMessage(input, DockerExecRequestSchema)) return programProblems(input.argv, isNotBlank);
  return [];
}

/** True for what a device looks up or runs: a name without a folder, or an absolute path. */
export function isProgram(program: string): boolean {
  return program.startsWith("/") || isProgramName(program);
}

/** True for a text that names a file in a folder, and not the folder itself or one elsewhere. */
export function isProgramName(program: string): boolean {
  return isNotBlank(program) && !program.includes("/") && program !== "." && program !== "..";
}

/** The variables of a caller that would change which code runs. */
export function reservedVariables(env: Readonly<Record<string, string>>): InputProblem[] {
  return Object.keys(env)
    .filter(isReserved)
    .map((name) => ({ field: `env["${name}"]`, message: `${name} cannot be set: it may change which code runs` }));
}

/** True for a variable that a caller may not set, in any case. */
function isReserved(name: string): boolean {
  const upper = name.toUpperCase();
  return RESERVED_NAMES.has(upper) || RESERVED_PREFIXES.some((prefix) => upper.startsWith(prefix));
}

function programProblems([program = ""]: readonly string[], fits: (program: string) => boolean): InputProblem[] {
  return fits(program) ? [] : [{ field: "argv[0]", message: PROGRAM_RULE }];
}

/** What the first argument must be. */
export const PROGRAM_RULE = "the program must be a name on the PATH or an absolute path";

function isNotBlank(program: string): boolean {
  return program.trim() !== "";
}
