/** Trees of the operating system. Deleting one whole is never what was meant. */
const SYSTEM_TREES =
  `bin boot dev etc home lib lib32 lib64 libx32 media mnt opt proc root run sbin srv sys usr var Applications Library
  System Users usr/bin usr/lib usr/lib64 usr/sbin usr/local usr/share var/lib var/lib/dpkg var/lib/rpm lib/modules
  usr/lib/modules boot/efi boot/grub sys/firmware/efi/efivars private/etc private/var`
    .split(/\s+/)
    .map((path) => path.split("/"));

/** Devices that may be written: they hold no data. */
const HARMLESS_DEVICE =
  /^\/dev\/(?:null|zero|full|u?random|tty\w*|ptmx|console|stdin|stdout|stderr|kmsg|log|fuse|kvm|(?:pts|fd|shm|tcp|udp|mqueue|snd|dri|input|net)\/.*)$/;

/** Files that the machine cannot start or let anybody in without; the names may be patterns. */
const VITAL_FILES = [
  ..."passwd shadow group gshadow sudoers fstab crypttab ld.so.preload ld.so.cache inittab nsswitch.conf"
    .split(" ")
    .map((name) => `/etc/${name}`),
  ..."init sh bash dash login sudo su mount"
    .split(" ")
    .flatMap((name) => [`/bin/${name}`, `/sbin/${name}`, `/usr/bin/${name}`, `/usr/sbin/${name}`]),
  "/lib/systemd/systemd",
  "/usr/lib/systemd/systemd",
];

/** Folders of such files, whatever their names: the kernel, its loader, who may log in, the C library. */
const VITAL_TREE =
  /^\/(?:boot\/.+|etc\/(?:pam|sudoers)\.d\/[^/]+|(?:usr\/)?lib(?:32|64)?(?:\/[\w-]+-linux-gnu\w*)?\/(?:ld-|libc[.-]|libpthread|libm[.-])[^/]*)$/;

/** A path in one spelling: absolute where the folder is known, "." and ".." and doubled slashes removed, home as "~". */
export function canonicalPath(word: string, folder?: string): string {
  let path = word.replace(/^file:\/\//, "").replace(/^(?:~[a-z_][\w-]*|~|\$HOME|\$\{HOME[^}]*\})(?=\/|$)/, "~");
  path = path.replace(/^\$(?:PWD|\{PWD\})(?=\/|$)/, ".");
  if (!path.startsWith("/") && !path.startsWith("~")) {
    if (folder === undefined) return path;
    path = `${folder}/${path}`;
  }
  path = path.replace(/^\/+proc\/+(?:self|thread-self|\d+)\/+root(?=\/|$)/, "/");
  const names: string[] = [];
  const home = path.startsWith("~");
  for (const name of path.slice(home ? 1 : 0).split("/")) {
    if (name === "..") names.pop();
    else if (name !== "" && name !== ".") names.push(name);
  }
  return `${home ? "~" : ""}/${names.join("/")}`;
}

/** True for the root, a tree of the system, or everything in one. Globs count as what they may match. */
export function isSystemTree(word: string, folder?: string): boolean {
  return expandBraces(word).some((each) => {
    const path = canonicalPath(each, folder);
    if (!path.startsWith("/")) return false;
    const names = withoutGlobTail(path);
    return names.length === 0 || SYSTEM_TREES.some((tree) => sameTree(names, tree));
  });
}

/** True for the whole home of a user, or everything in it. */
export function isHome(word: string, folder?: string): boolean {
  return expandBraces(word).some((each) => {
    const path = canonicalPath(each, folder);
    const names = withoutGlobTail(path.replace(/^~/, ""));
    if (path.startsWith("~")) return names.length === 0;
    return names.length === 2 && (names[0] === "home" || names[0] === "Users") && names[1] !== "Shared";
  });
}

/** True for a device whose content would be lost. */
export function isDataDevice(word: string, folder?: string): boolean {
  return expandBraces(word).some((each) => {
    const path = canonicalPath(each, folder);
    return path.startsWith("/dev/") && !HARMLESS_DEVICE.test(path);
  });
}

/** True for a file that the machine needs in order to start or to let anybody in. */
export function isVitalFile(word: string, folder?: string): boolean {
  return expandBraces(word).some((each) => {
    const path = canonicalPath(each, folder);
    return VITAL_TREE.test(path) || VITAL_FILES.some((file) => samePath(path, file));
  });
}

/** The names of a path; "/etc/*" and "/etc/.*" are "/etc". */
function withoutGlobTail(path: string): string[] {
  const names = path.split("/").filter((name) => name !== "");
  while (/^(?:[*?.[\]]*[*?][*?.[\]]*|\{[*.?,]+\})$/.test(names.at(-1) ?? "")) names.pop();
  return names;
}

function samePath(path: string, file: string): boolean {
  return path === file || (/[*?[]/.test(path) && sameTree(path.split("/"), file.split("/")));
}

function sameTree(names: readonly string[], tree: readonly string[]): boolean {
  return names.length === tree.length && names.every((name, level) => globMatches(name, tree[level] ?? ""));
}

/** True for a name that a pattern of a shell may stand for. */
export function globMatches(glob: string, name: string): boolean {
  if (glob === name) return true;
  if (!/[*?[]/.test(glob)) return false;
  const source = glob
    .replace(/[.+^${}()|\\]/g, "\\$&")
    .replace(/\*+/g, ".*")
    .replace(/\?/g, ".")
    .replace(/\[!/g, "[^");
  try {
    return new RegExp(`^${source}$`).test(name);
  } catch {
    return false;
  }
}

/** The words that bash's braces stand for: "/{a,b}" is "/a" and "/b". At most 64. */
function expandBraces(word: string, limit = 64): string[] {
  const match = /\{([^{}]*,[^{}]*)\}/.exec(word);
  if (match === null || limit <= 1) return [word];
  const [whole, choices = ""] = match;
  const before = word.slice(0, match.index);
  const after = word.slice(match.index + whole.length);
  const some = choices.split(",").slice(0, limit);
  return some.flatMap((choice) => expandBraces(before + choice + after, Math.floor(limit / some.length)));
}
