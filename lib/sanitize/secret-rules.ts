/** How one kind of secret is found. */
export interface SecretRule {
  kind: string;
  /** What every match contains, as a cheap expression. */
  hint: RegExp;
  /** Matches the secret, or in its group "secret" the part to take out. */
  pattern: RegExp;
}

/*
 * Every pattern is linear by its form: a run of characters is entered only at its start (the look-behind refuses a
 * start inside a run), or what fails does so within a bounded number of characters; repetitions stand next to different
 * characters, and nothing that is repeated repeats inside. A start may stand behind an encoded character, such as %3D.
 */
const ENCODED = "(?<=%[0-9A-Fa-f]{2})";
const RUN = String.raw`(?:(?<![\w-])|${ENCODED})`;

/** What names a value that is a secret. Behind it stands the sign that gives it. */
const PASSWORD_NAMES = "passw(?:or)?d|passphrase|pwd";
const SECRET_NAMES = `${PASSWORD_NAMES}|secret|secret[_-]?key|token|api[_-]?key|access[_-]?key|auth[_-]?key`;
const GIVES = String.raw`\\?["'\x60]?[ \t]{0,4}(?::=|=>|[:=])(?![=>:])[ \t]{0,4}`;

/** The cheap look for both: the sign, which is rare, with a name's end before it. */
const ASSIGNED = String.raw`[:=](?<=(?:[wW](?:[oO][rR])?[dD]|[hH][rR][aA][sS][eE]|[eE][cC][rR][eE][tT]|[oO][kK][eE][nN]|[kK][eE][yY])\\?["'\x60]?[ \t]{0,4}[:=])`;

/** What stands where a value would: types, what says that there is none, and paths, as in PWD=/srv. */
const NO_SECRET = String.raw`(?!/|(?:string|str|text|number|int|bool(?:ean)?|bytes|true|false|null|nil|none|undefined|unset|empty|required|optional|any|unknown|never|void|hidden|masked|redacted|prompt|secret|token|passw(?:or)?d|changeme|example|your[\w-]{0,40})(?![\w-]))`;

const VALUE = String.raw`[^\s"'\x60,;&<>(){}\[\]$\\|]`;
const VALUE_ENDS = String.raw`(?=[\s"'\x60,;&<}\]\\|)]|$)`;

/** All kinds, in the order in which one wins where several begin at the same place. */
export const RULES: readonly SecretRule[] = [
  rule("private_key", "PRIVATE KEY", privateKeyPattern()),
  rule(
    "aws_access_key",
    "A[KSBC][IC]A",
    `(?:(?<![A-Za-z0-9])|${ENCODED})(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}(?![A-Za-z0-9])`,
  ),
  rule(
    "aws_secret_key",
    "[sS]ecret_?[aA]ccess_?[kK]ey|SECRET_ACCESS_KEY|[sS]ession_?[tT]oken|SESSION_TOKEN",
    String.raw`(?:secret_?access_?key|aws_?session_?token|sessiontoken)["']?[ \t]{0,4}[:=][ \t]{0,4}["']?(?<secret>[A-Za-z0-9/+=]{16,2048})`,
    "i",
  ),
  rule("github_token", "gh[pousr]_|github_pat_", String.raw`(?:gh[pousr]_[A-Za-z0-9]{30,255}|github_pat_\w{22,255})`),
  rule("gitlab_token", "gl[a-z]{2,5}-", String.raw`gl(?:pat|dt|ptt|rt|cbt|oas|agent|ft|soat|imt)-[\w-]{20,300}`),
  rule(
    "slack_token",
    "xox[abeoprs]|xapp-",
    String.raw`(?:xox[abeoprs](?:\.xox[bp])?-[A-Za-z0-9-]{10,255}|xapp-\d-[A-Za-z0-9-]{10,255})`,
  ),
  rule(
    "slack_webhook",
    "hooks.slack.com",
    String.raw`hooks\.slack\.com/(?:services|workflows)/(?<secret>[A-Za-z0-9/]{20,120})`,
  ),
  rule(
    "api_key",
    "sk-",
    String.raw`${RUN}sk-(?:(?:ant|proj|svcacct|admin|or|live|test)-[\w-]{16,300}|[A-Za-z0-9]{20,300})`,
  ),
  rule(
    "stripe_key",
    "[sr]k_|whsec_",
    `${RUN}(?:[sr]k_(?:live|test|prod)_[A-Za-z0-9]{10,255}|whsec_[A-Za-z0-9]{20,255})`,
  ),
  rule("google_key", "AIza|ya29|GOCSPX", String.raw`${RUN}(?:AIza[\w-]{35}|ya29\.[\w-]{20,2048}|GOCSPX-[\w-]{20,255})`),
  rule("package_token", "npm_|pypi-", String.raw`(?:npm_[A-Za-z0-9]{36,255}|pypi-AgE[\w-]{50,255})`),
  rule("vendor_token", "hf_|hvs|dop_v1|SG|tskey", vendorPattern()),
  rule("reeve_token", "rv_", String.raw`(?:rv_[A-Za-z0-9]{12}_[\w-]{43}|${RUN}rv_[\w-]{16,255})`),
  rule("jwt", "eyJ", jwtPattern()),
  rule("bearer", "[aA]uthorization|AUTHORIZATION", bearerPattern(), "i"),
  rule(
    "password",
    "://[^\\s/@]{0,320}@",
    String.raw`(?<![\w+.-])[A-Za-z][\w+.-]{1,20}://[^\s:@/?#]{0,64}:(?<secret>[^\s@/]{1,256})@`,
  ),
  rule("url_secret", "[?&][\\w-]{3,20}=", urlPattern(), "i"),
  rule("twilio_key", "SK[0-9a-f]{4}", `${RUN}SK[0-9a-f]{32}(?![0-9A-Za-z])`),
  rule("age_key", "AGE-SECRET-KEY-", "AGE-SECRET-KEY-1[0-9A-Za-z]{20,100}"),
  rule("password_hash", "\\$(?:[1567y]|gy|2[abxy])\\$", String.raw`\$(?:[1567y]|gy|2[abxy])\$[\w./$,=-]{20,256}`),
  rule("registry_auth", "auth\\W|identitytoken", registryPattern()),
  rule("password", "mysql|mariadb|sshpass", commandPattern()),
  rule("password", ASSIGNED, passwordPattern(), "im"),
  rule("secret", ASSIGNED, assignmentPattern(), "i"),
];

function rule(kind: string, hint: string, pattern: string, flags = ""): SecretRule {
  return { kind, hint: new RegExp(hint), pattern: new RegExp(pattern, `dg${flags}`) };
}

/** A PEM block (RFC 7468) or OpenPGP block: header line, header fields, base64 with real or escaped line ends, end. */
function privateKeyPattern(): string {
  const begin = "-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----";
  const body = String.raw`(?:(?<=\n)[A-Z][A-Za-z-]{2,20}: [^\n]{0,100}\n|[A-Za-z0-9+/=\s]|\\[nr]){0,32768}`;
  return `${begin}${body}(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----)?`;
}

function vendorPattern(): string {
  const tokens = [
    "hf_[A-Za-z]{30,60}",
    String.raw`hvs\.[\w-]{24,255}`,
    "dop_v1_[a-f0-9]{64}",
    String.raw`SG\.[\w-]{16,32}\.[\w-]{16,64}`,
    String.raw`tskey-[a-z]{2,10}-[\w-]{10,100}`,
  ];
  return `${RUN}(?:${tokens.join("|")})`;
}

function bearerPattern(): string {
  return String.raw`authorization["']?[ \t]{0,4}[:=][ \t]{0,4}["']?(?:bearer|basic|token)[ \t]{1,4}(?<secret>[\w.~+/=-]{8,4096})`;
}

function urlPattern(): string {
  const names = "access_token|auth_token|api_?key|client_secret|password|x-amz-signature|x-goog-signature|sig";
  return String.raw`[?&](?:${names})=(?<secret>[^&\s"'#<>]{8,1024})`;
}

/** Header, payload and signature; a payload that is no JSON, such as an encrypted one, where there are three parts or more. */
function jwtPattern(): string {
  const plain = String.raw`eyJ[\w-]{10,16384}(?:\.[\w-]{0,2048})?`;
  const other = String.raw`[\w-]{0,16384}\.[\w-]{16,16384}(?:\.[\w-]{1,16384}){0,2}`;
  return String.raw`(?:(?<![\w.-])|${ENCODED})eyJ[\w-]{10,4096}\.(?:${plain}|${other})`;
}

/** What docker, podman and the like keep for a registry: the base64 of user and password. */
function registryPattern(): string {
  return String.raw`\\?["'](?:auth|identitytoken)\\?["']\s{0,8}:\s{0,8}\\?["'](?<secret>[\w+/=.-]{8,4096})`;
}

/** A password that is glued to its option, in the commands that take it so. */
function commandPattern(): string {
  return String.raw`(?<![\w-])(?:mysql\w{0,10}|mariadb[\w-]{0,12}|sshpass)[ \t][^\n]{0,256}?(?<=[ \t])-p(?<secret>[^\s"'[][^\s"']{0,127})`;
}

/**
 * A password that is given a value: in quotes, or as all that stands on a line behind a name, as in a settings file.
 * A value of program text, such as a type, a call or a member of something, is no secret.
 */
function passwordPattern(): string {
  const quoted = String.raw`(?:${PASSWORD_NAMES})${GIVES}\\?["'\x60]${NO_SECRET}(?<secret>${VALUE}{4,256})\\?["'\x60]`;
  const line = String.raw`^[ \t]{0,32}(?:export[ \t]|-[ \t])?[\w.-]{0,64}?(?:${PASSWORD_NAMES})${GIVES}${NO_SECRET}(?<secret>(?![A-Za-z_$][\w$]{0,64}\.)${VALUE}{3,256})[ \t\r]{0,8}$`;
  return `(?:${quoted}|${line})`;
}

/** A value that looks made up, with a digit in it, behind a name that says that it is secret. */
function assignmentPattern(): string {
  const madeUp = String.raw`(?=[^\s"'\x60,;&<>(){}\[\]$\\|]{0,255}[0-9])`;
  const noMember = String.raw`(?![A-Za-z_$][\w$]{0,64}\.[A-Za-z_$])`;
  const password = String.raw`(?:${PASSWORD_NAMES})${GIVES}["'\x60]?${NO_SECRET}${noMember}${madeUp}(?<secret>${VALUE}{4,256})${VALUE_ENDS}`;
  const other = String.raw`(?:${SECRET_NAMES})${GIVES}["'\x60]?${NO_SECRET}${noMember}${madeUp}(?<secret>[\w.~+/=%-]{8,1024})${VALUE_ENDS}`;
  return `(?:${password}|${other})`;
}
