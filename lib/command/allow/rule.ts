/**
 * One program that may run without a person being asked, and how: what is not named here is asked about. A program may
 * be on the list only where no option or operand that its rule names makes it write, run another program, talk to
 * another machine, or run without end.
 *
 * `flags` and `operands` are lists of words:
 *   -a --all        takes no value
 *   -n=int          takes a value of a kind (see kinds.ts): "-n 5", "-n5"; "--lines=int": "--lines 5", "--lines=5"
 *   --color?=word   may have a value, behind "=" only
 *   -#              a number as an option: "-20"
 *   path            one operand of a kind; "path?" none or one, "path*" any number of them, "path+" at least one
 * Beginnings of long options are refused, though programs take them.
 */
export interface ProgramRule extends Usage {
  /** Its names: "md5sum sha256sum" have one rule. */
  program: string;
  /** The folders that it is taken from, if not those of the system. */
  folders?: readonly string[];
  /** "required" where it runs other programs itself, or reads settings that may name some. */
  sandbox: "optional" | "required";
  profile?: "git_readonly";
  /** Words put behind the program's name. */
  forced?: readonly string[];
  /** Argument lists that are allowed, and some that are not. Run by the tests. */
  match: readonly string[];
  not_match: readonly string[];
}

/** How a program, or one of its subcommands, may be used. */
export interface Usage {
  flags?: string;
  operands?: string;
  /** By names: "ls list". Where a usage has some, one of them has to follow. */
  subcommands?: Readonly<Record<string, Usage>>;
  /** True where it may also stand without a subcommand. */
  bare?: boolean;
  /** Options are single words that begin with one dash, as find's and ip's. */
  style?: "gnu" | "single";
  /** Operands that are punctuation, as find's "(". */
  punctuation?: string;
  /** First words that are options without their dash, as tar's "tzf". */
  bundle?: RegExp;
  /** Options that make its operands whole trees, of which everything is read. */
  recursive?: string;
  /** True where it reads the folder that it runs in when no path is given. */
  here?: boolean;
  /** Options of which one is required. */
  needs?: string;
  /** Options that take the place of the first operand, as grep's -e. */
  instead?: string;
  /** What else must hold of all words; the reason where it does not. */
  check?: (words: readonly string[]) => string | undefined;
  /** Words put behind the subcommand. */
  extra?: readonly string[];
}
