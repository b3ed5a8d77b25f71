import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { fault } from "../../../lib/fault/fault.ts";

/** The variables of the agent's own environment that programs get. Everything else stays with the agent. */
const INHERITED = ["PATH", "HOME", "LANG", "LC_ALL", "TZ", "USER"] as const;

const DEFAULTS: Readonly<Record<string, string>> = {
  PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
  LANG: "C.UTF-8",
};

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
  "LD_ DYLD_ BASH_FUNC_ PYTHON PERL RUBY GEM_ GIT_ SSH_ DOCKER_ MALLOC_ GLIBC_ LUA_ PHP REEVE_".split(" ");

/** What every program starts with, taken from the agent's environment by name. */
export function baseEnvironment(agent: Readonly<Record<string, string | undefined>>): Record<string, string> {
  const base: Record<string, string> = {};
  for (const name of INHERITED) {
    const value = agent[name] || DEFAULTS[name];
    if (value !== undefined) base[name] = value;
  }
  return base;
}

/** Refuses a caller's variable that would change which code runs. Fault: INVALID_INPUT{field,rule}. */
export function checkEnvironment(env: Readonly<Record<string, string>>): void {
  for (const name of Object.keys(env)) {
    if (!isReserved(name)) continue;
    const field = `env["${name}"]`;
    const message = `${name} cannot be set: it may change which code runs`;
    throw fault(
      ErrorReason.INVALID_INPUT,
      { field, rule: "env.reserved" },
      { message, violations: [{ field, message }] },
    );
  }
}

/** True for a variable that a caller may not set, in any case. */
export function isReserved(name: string): boolean {
  const upper = name.toUpperCase();
  return RESERVED_NAMES.has(upper) || RESERVED_PREFIXES.some((prefix) => upper.startsWith(prefix));
}
