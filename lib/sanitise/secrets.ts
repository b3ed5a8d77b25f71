/** A part of a text that is a secret. */
export interface SecretSpan {
  start: number;
  end: number;
  /** What kind, such as "github_token". */
  kind: string;
}

interface SecretRule {
  kind: string;
  /** What every match contains, as the source of a cheap expression. */
  hint: string;
  /** Matches the secret, or in its group "secret" the part to take out. */
  pattern: RegExp;
}

/*
 * Every pattern is linear by its form: a run of characters is entered only at its start (the look-behind refuses a
 * start inside a run), repetitions stand next to different characters, and nothing that is repeated repeats inside.
 */
const RUN = String.raw`(?<![\w-])`;

const RULES: readonly SecretRule[] = [
  rule("private_key", "PRIVATE KEY", privateKeyPattern()),
  rule("aws_access_key", "A[KSBC][IC]A", "(?<![A-Za-z0-9])(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}(?![A-Za-z0-9])"),
  rule(
    "aws_secret_key",
    "[sS]ecret_?[aA]ccess_?[kK]ey|SECRET_ACCESS_KEY|[sS]ession_?[tT]oken|SESSION_TOKEN",
    String.raw`(?:secret_?access_?key|aws_?session_?token|sessiontoken)["']?[ \t]{0,4}[:=][ \t]{0,4}["']?(?<secret>[A-Za-z0-9/+=]{16,2048})`,
    "i",
  ),
  rule(
    "github_token",
    "gh[pousr]_|github_pat_",
    String.raw`${RUN}(?:gh[pousr]_[A-Za-z0-9]{30,255}|github_pat_\w{22,255})`,
  ),
  rule("gitlab_token", "gl[a-z]{2,5}-", String.raw`${RUN}gl(?:pat|dt|ptt|rt|cbt|oas|agent|ft|soat|imt)-[\w-]{20,300}`),
  rule(
    "slack_token",
    "xox[abeoprs]|xapp-",
    String.raw`${RUN}(?:xox[abeoprs](?:\.xox[bp])?-[A-Za-z0-9-]{10,255}|xapp-\d-[A-Za-z0-9-]{10,255})`,
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
  rule("package_token", "npm_|pypi-", String.raw`${RUN}(?:npm_[A-Za-z0-9]{36,255}|pypi-AgE[\w-]{50,255})`),
  rule("vendor_token", "hf_|hvs|dop_v1|SG|tskey", vendorPattern()),
  rule("reeve_token", "rv_", String.raw`${RUN}rv_[\w-]{16,255}`),
  rule("jwt", "eyJ", String.raw`(?<![\w.-])eyJ[\w-]{10,4096}\.eyJ[\w-]{10,16384}(?:\.[\w-]{0,2048})?`),
  rule("bearer", "[aA]uthorization|AUTHORIZATION", bearerPattern(), "i"),
  rule(
    "password",
    "://[^\\s/@]{0,320}@",
    String.raw`(?<![\w+.-])[A-Za-z][\w+.-]{1,20}://[^\s:@/?#]{0,64}:(?<secret>[^\s@/]{1,256})@`,
  ),
  rule("url_secret", "[?&][\\w-]{3,20}=", urlPattern(), "i"),
];

const HINT = new RegExp(RULES.map((each) => each.hint).join("|"));

/** The secrets of a text, in order, without overlaps. Linear in the length of the text. */
export function findSecrets(text: string): SecretSpan[] {
  if (!HINT.test(text)) return [];
  const spans: SecretSpan[] = [];
  for (const { kind, pattern } of RULES) {
    for (const match of text.matchAll(pattern)) {
      const [start, end] = match.indices?.groups?.secret ?? [match.index, match.index + match[0].length];
      spans.push({ start, end, kind });
    }
  }
  return withoutOverlaps(spans);
}

/** Puts "[redacted: kind]" in the place of each secret. */
export function redactSpans(text: string, spans: readonly SecretSpan[]): string {
  let result = "";
  let from = 0;
  for (const span of spans) {
    result += `${text.slice(from, span.start)}[redacted: ${span.kind}]`;
    from = span.end;
  }
  return result + text.slice(from);
}

function withoutOverlaps(spans: SecretSpan[]): SecretSpan[] {
  const kept: SecretSpan[] = [];
  for (const span of spans.toSorted((a, b) => a.start - b.start)) {
    const last = kept.at(-1);
    if (last !== undefined && span.start < last.end) last.end = Math.max(last.end, span.end);
    else kept.push({ ...span });
  }
  return kept;
}

function rule(kind: string, hint: string, pattern: string, flags = ""): SecretRule {
  return { kind, hint, pattern: new RegExp(pattern, `dg${flags}`) };
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
