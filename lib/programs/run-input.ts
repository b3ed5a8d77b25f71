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

/** True for what a device looks up or runs: a name without a folder, or an absolute path. */
export function isProgram(program: string): boolean {
  return program.startsWith("/") || isProgramName(program);
}

/** True for a text that names a file in a folder, and not the folder itself or one elsewhere. */
export function isProgramName(program: string): boolean {
  return isNotBlank(program) && !program.includes("/") && program !== "." && program !== "..";
}

/** Those of a caller's variables that would change which code runs, with the reason. */
export function reservedVariables(names: readonly string[]): { name: string; message: string }[] {
  return names
    .filter(isReserved)
    .map((name) => ({ name, message: `${name} cannot be set: it may change which code runs` }));
}

/** True for a variable that a caller may not set, in any case. */
function isReserved(name: string): boolean {
  const upper = name.toUpperCase();
  return RESERVED_NAMES.has(upper) || RESERVED_PREFIXES.some((prefix) => upper.startsWith(prefix));
}

/** What the first argument must be. */
export const PROGRAM_RULE = "the program must be a name on the PATH or an absolute path";

/** True for a text with more than white space. */
export function isNotBlank(program: string): boolean {
  return program.trim() !== "";
}
