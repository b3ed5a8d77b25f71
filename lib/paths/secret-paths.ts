/** Folders whose whole content is secret, by the names that lead to them, wherever they lie. */
const SECRET_FOLDERS: readonly string[][] = [
  [".ssh"],
  [".aws"],
  [".gnupg"],
  [".azure"],
  [".oci"],
  [".config", "gcloud"],
  [".config", "gh"],
  [".config", "op"],
  [".config", "sops"],
  [".config", "rclone"],
  [".config", "doctl"],
  [".config", "hub"],
  [".config", "containers"],
  [".config", "google-chrome"],
  [".config", "chromium"],
  [".config", "BraveSoftware"],
  [".config", "microsoft-edge"],
  [".mozilla"],
  [".thunderbird"],
  [".password-store"],
  [".local", "share", "keyrings"],
  [".local", "share", "kwalletd"],
  [".bitcoin"],
  [".ethereum", "keystore"],
  [".electrum", "wallets"],
  ["Library", "Keychains"],
  ["Library", "Cookies"],
  ["Library", "Application Support", "Google", "Chrome"],
  ["Library", "Application Support", "Firefox"],
  ["Library", "Application Support", "sops"],
  ["etc", "ssl", "private"],
];

/** Files that are secret, by the last names of their path, wherever they lie. */
const SECRET_FILES: readonly string[][] = [
  [".kube", "config"],
  [".docker", "config.json"],
  [".dockercfg"],
  ["containers", "auth.json"],
  [".netrc"],
  ["_netrc"],
  [".npmrc"],
  [".yarnrc.yml"],
  [".pypirc"],
  [".pgpass"],
  [".my.cnf"],
  [".mylogin.cnf"],
  [".boto"],
  [".s3cfg"],
  [".git-credentials"],
  [".config", "git", "credentials"],
  [".cargo", "credentials"],
  [".cargo", "credentials.toml"],
  [".gem", "credentials"],
  [".m2", "settings.xml"],
  [".m2", "settings-security.xml"],
  [".gradle", "gradle.properties"],
  [".composer", "auth.json"],
  [".terraformrc"],
  [".terraform.d", "credentials.tfrc.json"],
  [".vault-token"],
  [".claude", ".credentials.json"],
  [".claude.json"],
  [".codex", "auth.json"],
  [".gemini", "oauth_creds.json"],
  [".cache", "huggingface", "token"],
  [".huggingface", "token"],
  [".Xauthority"],
  [".ICEauthority"],
  ["terraform.tfstate"],
  ["terraform.tfstate.backup"],
  ["wallet.dat"],
  ["etc", "shadow"],
  ["etc", "shadow-"],
  ["etc", "gshadow"],
  ["etc", "gshadow-"],
  ["etc", "sudoers"],
];

/** Names of key files and of files with variables. Samples such as ".env.example" hold no secrets. */
const SECRET_NAMES: readonly RegExp[] = [
  /^id_(?:rsa|dsa|ecdsa|ed25519)(?:_sk)?$/i,
  /^ssh_host_\w{1,20}_key$/i,
  /^\.env(?:\.(?!example$|sample$|template$|dist$|defaults$)[^/]{1,64})?$/i,
  /\.(?:p12|pfx|keystore|jks|kdbx|ppk)$/i,
  // What was typed at a prompt often holds passwords.
  /^\.(?:\w{1,20}_history|histfile|zhistory)$/i,
  /^fish_history$/i,
];

/** Names that often hold keys or credentials, and often do not: certificates, for example. */
const DOUBTFUL_NAMES =
  /^(?:id_(?:rsa|dsa|ecdsa|ed25519).*|.*\.(?:pem|key|p12|pfx|jks|keystore|kdbx)|credentials(?:\.json)?)$/i;

/**
 * True for a name that may be a secret's although the file may be read by who names it. What looks through many files that
 * no caller named passes over it.
 */
export function looksSecret(name: string): boolean {
  return DOUBTFUL_NAMES.test(name);
}

/** Files of a process under /proc that show its environment, memory or open files. */
const SECRET_PROC = new Set(["environ", "mem", "auxv", "fd", "fdinfo", "map_files", "root", "cwd", "exe"]);

/** Files of the kernel that show its memory. */
const SECRET_KERNEL = new Set(["kcore", "kmem", "kallsyms"]);

/**
 * True for a path that may hold secrets: keys, credentials, files of variables, other processes' environments. `path`
 * is the real path, by its names. Names are compared without regard to case, because some disks do that too.
 */
export function isSecret(path: readonly string[]): boolean {
  const names = path.map((name) => name.toLowerCase());
  if (names[0] === "proc" && isSecretProc(names)) return true;
  const last = names.at(-1) ?? "";
  if (SECRET_NAMES.some((pattern) => pattern.test(last))) return true;
  if (FILES_BY_LAST.get(last)?.some((tail) => matchesAt(names, tail, names.length - tail.length))) return true;
  return names.some((name, at) => FOLDERS_BY_FIRST.get(name)?.some((folder) => matchesAt(names, folder, at)));
}

// Whole folders are searched with it: a name is compared with few others.
const FILES_BY_LAST = groupedBy(SECRET_FILES, -1);
const FOLDERS_BY_FIRST = groupedBy(SECRET_FOLDERS, 0);

/** In lower case, by the name at a place of each. */
function groupedBy(paths: readonly string[][], at: number): ReadonlyMap<string, string[][]> {
  return Map.groupBy(
    paths.map((path) => path.map((name) => name.toLowerCase())),
    (path) => path.at(at) ?? "",
  );
}

function isSecretProc(names: readonly string[]): boolean {
  if (SECRET_KERNEL.has(names[1] ?? "")) return true;
  return names.slice(2).some((name) => SECRET_PROC.has(name));
}

function matchesAt(names: readonly string[], part: readonly string[], at: number): boolean {
  return at >= 0 && part.every((name, level) => names[at + level] === name);
}
