import { describe, expect, it } from "vitest";
import { cleanJson, cleanOutput, createStreamCleaner, maskCutSecrets, stripControls } from "./sanitize.ts";

const hex = (count: number): string => "0123456789abcdef".repeat(20).slice(0, count);
const alnum = (count: number): string => "aB3dE5gH7jK9mN1pQ2rS4tU6vW8xY0zZ".repeat(20).slice(0, count);

/** Built from parts, so that no scanner takes this file for a leak. */
const SECRETS: [kind: string, secret: string][] = [
  ["aws_access_key", `AKIA${"ABCDEFGH234567QR"}`],
  ["aws_access_key", `ASIA${"ZZZZZZZZ222222ZZ"}`],
  ["github_token", `ghp_${alnum(36)}`],
  ["github_token", `ghs_${alnum(36)}`],
  ["github_token", `github_pat_${alnum(22)}_${alnum(59)}`],
  ["gitlab_token", `glpat-${alnum(20)}`],
  ["slack_token", `xoxb-123456789012-${alnum(24)}`],
  ["slack_token", `xapp-1-A0123456789-${hex(64)}`],
  ["api_key", `sk-ant-api03-${alnum(90)}-AA`],
  ["api_key", `sk-proj-${alnum(48)}`],
  ["api_key", `sk-${alnum(48)}`],
  ["stripe_key", `sk_live_${alnum(24)}`],
  ["google_key", `AIza${alnum(35)}`],
  ["package_token", `npm_${alnum(36)}`],
  ["vendor_token", `hf_${"abcdefghijklmnopqrstuvwxyzABCDEFGH"}`],
  ["vendor_token", `hvs.${alnum(90)}`],
  ["reeve_token", `rv_0123456789ab_${alnum(43)}`],
  ["jwt", `eyJ${alnum(30)}.eyJ${alnum(60)}.${alnum(43)}`],
];

describe("secrets", () => {
  it.each(SECRETS)("takes out a %s wherever it stands", (kind, secret) => {
    for (const [before, after] of [
      ["", ""],
      ["key=", "\n"],
      ['{"a":"', '"}'],
      ["x ", " y"],
      ["(", ")."],
    ]) {
      const { text, redactions, changed } = cleanOutput(`${before}${secret}${after}`);
      expect(text).toBe(`${before}[redacted: ${kind}]${after}`);
      expect([redactions, changed]).toEqual([1, true]);
    }
  });

  it.each([
    ["postgres://app:hunter2@db:5432/x", "postgres://app:[redacted: password]@db:5432/x"],
    ["redis://:p%40ss@cache", "redis://:[redacted: password]@cache"],
    ["Authorization: Bearer abcdef0123456789", "Authorization: Bearer [redacted: bearer]"],
    ['"authorization": "Basic dXNlcjpwYXNz"', '"authorization": "Basic [redacted: bearer]"'],
    ["aws_secret_access_key = wJalrXUtnFEMIK7MDENG", "aws_secret_access_key = [redacted: aws_secret_key]"],
    ["GET /x?a=1&access_token=0123456789abc&b=2", "GET /x?a=1&access_token=[redacted: url_secret]&b=2"],
    [`https://hooks.slack.com/services/${alnum(40)}`, "https://hooks.slack.com/services/[redacted: slack_webhook]"],
  ])("takes only the secret out of %s", (text, clean) => {
    expect(cleanOutput(text).text).toBe(clean);
  });

  it.each([
    ['{"auths":{"x":{"auth": "dXNlcjpodW50ZXIy"}}}', '{"auths":{"x":{"auth": "[redacted: registry_auth]"}}}'],
    [`sid SK${hex(32)} x`, "sid [redacted: twilio_key] x"],
    [`eyJ${alnum(30)}.${alnum(60)}.${alnum(43)} x`, "[redacted: jwt] x"],
    ["mysql -u root -phunter2 db", "mysql -u root -p[redacted: password] db"],
    ["sshpass -phunter2 ssh x", "sshpass -p[redacted: password] ssh x"],
    ["password: hunter", "password: [redacted: password]"],
    ["  DB_PASSWORD=correcthorse\nA=b", "  DB_PASSWORD=[redacted: password]\nA=b"],
    ['x = {"password": "hunter", "a": 1}', 'x = {"password": "[redacted: password]", "a": 1}'],
    ["run --password=hunter2 now", "run --password=[redacted: secret] now"],
    ["client_secret= abcdefgh1", "client_secret= [redacted: secret]"],
    ["token: 0123456789abcdef", "token: [redacted: secret]"],
    ["SECRET_KEY='abc-def-123'", "SECRET_KEY='[redacted: secret]'"],
    [`AGE-SECRET-KEY-1${"Q".repeat(58)}`, "[redacted: age_key]"],
    [`root:$6$salt$${alnum(86)}:19000:`, "root:[redacted: password_hash]:19000:"],
    [`me:$y$j9T$abcdefgh$${alnum(43)}:1`, "me:[redacted: password_hash]:1"],
    [`https://x/?q%3Dghp_${alnum(36)}`, "https://x/?q%3D[redacted: github_token]"],
    [`xyzghp_${alnum(36)}`, "xyz[redacted: github_token]"],
    [`a%3Dsk-${alnum(48)}`, "a%3D[redacted: api_key]"],
  ])("takes only the secret out of %s too", (text, clean) => {
    expect(cleanOutput(text).text).toBe(clean);
  });

  it("looks at what base64 stands for, and keeps its length", () => {
    const secret = `ghp_${alnum(36)}`;
    const bytes = Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from(`a ${secret} b`)]);
    const { value, redactions, changed } = cleanJson({ data: bytes.toString("base64") });
    expect([redactions, changed]).toEqual([1, true]);
    const masked = Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from(`a ${"*".repeat(secret.length)} b`)]);
    expect(Buffer.from(value.data, "base64")).toEqual(masked);
    const harmless = { data: Buffer.from(alnum(60)).toString("base64"), sha: hex(64) };
    expect(cleanJson(harmless).value).toBe(harmless);
  });

  it("masks the part of a secret that a slice cuts, and no more", () => {
    const secret = `ghp_${alnum(36)}`;
    const file = Buffer.from(`one ${secret} two ${secret}`);
    expect(maskCutSecrets(file, 8, 50).toString()).toBe(`${"*".repeat(36)} two *`);
    expect(maskCutSecrets(file, 0, 9).toString()).toBe("one *****");
    expect(maskCutSecrets(file, 10, 19).toString()).toBe("*********");
    expect(maskCutSecrets(file, 0, 46).toString()).toBe(`one ${secret} t`);
  });

  it("masks what a large slice cuts at both its ends, also a long key, and nothing between", () => {
    const secret = `ghp_${alnum(36)}`;
    const key = `-----BEGIN PRIVATE KEY-----\n${"A".repeat(20_000)}\n-----END PRIVATE KEY-----\n`;
    const lines = "nothing to see\n".repeat(20_000);
    const file = Buffer.from(`${key}${lines}${secret}\n${lines}${key}`);
    const [from, to] = [100, file.length - 100];
    const expected = `${"*".repeat(key.length - 1 - from)}\n${lines}${secret}\n${lines}${"*".repeat(key.length - 100)}`;
    expect(maskCutSecrets(file, from, to).toString()).toBe(expected);
  });

  it.each(["RSA PRIVATE KEY", "PRIVATE KEY", "OPENSSH PRIVATE KEY", "PGP PRIVATE KEY BLOCK"])(
    "takes out a whole %s",
    (name) => {
      const lines = [
        `-----BEGIN ${name}-----`,
        "Proc-Type: 4,ENCRYPTED",
        "",
        alnum(64),
        `${alnum(30)}==`,
        `-----END ${name}-----`,
      ];
      expect(cleanOutput(`a\n${lines.join("\n")}\nb`).text).toBe("a\n[redacted: private_key]\nb");
      expect(cleanOutput(`{"k":"${lines.join("\\n")}"}`).redactions).toBe(1);
    },
  );

  it("takes out a key that was cut, and leaves what follows it", () => {
    const { text } = cleanOutput(`-----BEGIN PRIVATE KEY-----\n${alnum(64)}\n[... 9 bytes left out ...]\nafter`);
    expect(text).toBe("[redacted: private_key][... 9 bytes left out ...]\nafter");
  });

  it.each([
    "The sk-loading-indicator-animation class",
    "https://example.com:8080/path@2x.png?size=12345678",
    "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
    "AKIA is a prefix; risk-management-department-overview",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl me@host",
    "mailto:someone@example.com git@github.com:owner/repo.git",
    `sha256:${hex(64)} rv_short total 12`,
    "eyJ is how a JWT starts",
    "password: string;",
    "const password = input.value;",
    "password: config.password, token: getToken(1)",
    'if (password === "") return token == null;',
    "PWD=/srv/app1",
    "OLDPWD=/home/me2",
    "cp -pr a b; mkdir -p x; mysql --version",
    "max_tokens: 4096, token_count=123456789",
    "Password: ",
    "token: required",
    "export TOKEN=$(cat file1)",
    "const [key, value] = entry; key: 12345678",
    "the price is $5 and $6 more",
  ])("leaves %s alone", (text) => {
    expect(cleanOutput(text)).toEqual({ text, redactions: 0, changed: false });
  });

  it("finds a token that control characters cut in two", () => {
    const secret = `ghp_${alnum(36)}`;
    expect(cleanOutput(`${secret.slice(0, 9)}\x1b[31m\u200b${secret.slice(9)}`).text).toBe("[redacted: github_token]");
  });
});

describe("control characters", () => {
  it.each([
    ["colors", "\x1b[1;31mred\x1b[0m", "red"],
    ["C1 sequences", "\x9b31mred", "red"],
    ["a window title", "\x1b]0;owned\x07text", "text"],
    ["a hyperlink", "\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"],
    ["a device string", "\x1bP+q544e\x1b\\text", "text"],
    ["a title without an end", "\x1b]0;kept", "0;kept"],
    ["single escapes", "\x1b7\x1bc\x1b(Btext", "text"],
    ["a lone escape", "a\x1b", "a"],
    ["bell, backspace, NUL", "a\x07b\x08c\x00d\x7f", "abcd"],
    ["line ends", "a\r\nb\rc\td\n", "a\nb\nc\td\n"],
    ["bidi", "a\u202eb\u2066c\u200fd", "abcd"],
    ["zero width", "a\u200bb\u2060c\ufeffd\u00ade", "abcde"],
    ["tags", "a\u{e0041}\u{e0042}b", "ab"],
    ["variation selectors that carry data", "a\u{e0101}b", "ab"],
    ["line and paragraph separators", "a\u2028b\u2029c", "a\nb\nc"],
    ["annotations", "a\ufff9b\ufffac\ufffbd", "abcd"],
    ["a flood of marks", `a${"\u0301".repeat(50)}b`, `a${"\u0301".repeat(5)}b`],
    ["marks of a script", "בְּרֵאשִׁ֖ית กี่ हिन्दी e\u0301\u0323", "בְּרֵאשִׁ֖ית กี่ हिन्दी e\u0301\u0323"],
    ["half a pair", "a\ud800b", "a\ufffdb"],
    ["letters of any script", "żółć 日本語 العربية ❤\ufe0f 😀", "żółć 日本語 العربية ❤\ufe0f 😀"],
  ])("%s", (_, text, clean) => {
    expect(stripControls(text)).toBe(clean);
  });
});

describe("cleanJson", () => {
  it("gives back the very same value where nothing is to be done", () => {
    const value = { a: ["x", 1, null, { b: true }] };
    expect(cleanJson(value)).toEqual({ value, redactions: 0, changed: false });
    expect(cleanJson(value).value).toBe(value);
  });

  it("cleans strings and keys at every depth", () => {
    const secret = `ghp_${alnum(36)}`;
    const { value, redactions, changed } = cleanJson({ list: [{ text: `a ${secret}` }], [secret]: "\x1b[1mb" });
    expect(value).toEqual({ list: [{ text: "a [redacted: github_token]" }], "[redacted: github_token]": "b" });
    expect([redactions, changed]).toEqual([2, true]);
  });

  it("loses no value when two keys become one", () => {
    expect(cleanJson({ a: 1, "a\u200b": 2 }).value).toEqual({ a: 1, a_: 2 });
  });

  it("keeps __proto__ a plain key", () => {
    const { value } = cleanJson(JSON.parse('{"__proto__":{"x":"\\u0007"}}'));
    expect(JSON.stringify(value)).toBe('{"__proto__":{"x":""}}');
  });

  it("leaves out what is nested too deep, and stands", () => {
    const deep = JSON.parse("[".repeat(5000) + "]".repeat(5000));
    expect(JSON.stringify(cleanJson(deep).value)).toContain("nested too deep");
  });
});

describe("stream", () => {
  const texts = [
    ...SECRETS.map(([, secret]) => `before ${secret} after\nnext line ${secret}`),
    `a\n-----BEGIN PRIVATE KEY-----\n${alnum(64)}\n${alnum(64)}\n-----END PRIVATE KEY-----\nb`,
    "\x1b[1;31mred\x1b[0m\r\n\x1b]0;title\x1b\\héllo 😀\r\n\x1b]8;;http://x\x07z",
    `a${"\u0301".repeat(50)}b\u2028c\ufff9d`,
    "DB_PASSWORD=correcthorse\n  password: hunter2\nmysql -phunter2 x\n",
    `${"word ".repeat(400)}ghp_${alnum(36)} ${"x".repeat(3000)}`,
  ];

  it.each([1, 2, 3, 7, 16, 100, 511, 4096])("gives the same as the whole, cut every %d bytes", (size) => {
    for (const text of texts) {
      const cleaner = createStreamCleaner();
      const bytes = Buffer.from(text);
      let result = "";
      for (let at = 0; at < bytes.length; at += size) result += cleaner.push(bytes.subarray(at, at + size));
      result += cleaner.end();
      const whole = cleanOutput(text);
      expect(result).toBe(whole.text);
      expect(cleaner.redactions).toBe(whole.redactions);
    }
  });

  it("passes whole lines at once", () => {
    const cleaner = createStreamCleaner();
    expect(cleaner.push(Buffer.from("one\ntwo\nthr"))).toBe("one\ntwo\n");
    expect(cleaner.push(Buffer.from("ee\n"))).toBe("three\n");
    expect(cleaner.end()).toBe("");
  });

  it("holds back a bounded amount", () => {
    const cleaner = createStreamCleaner();
    let shown = 0;
    for (let i = 0; i < 100; i++) shown += cleaner.push(Buffer.from("y".repeat(1000))).length;
    expect(shown).toBeGreaterThanOrEqual(100_000 - 1024);
  });
});

describe("pathological input", () => {
  const COUNT = 200_000;
  it.each([
    "eyJ",
    "eyJ-",
    "eyJa.eyJ",
    "sk-",
    "sk-ant-",
    "-----BEGIN PRIVATE KEY-----",
    "-----BEGIN ",
    "\x1b",
    "\x1b[",
    "\x1b]",
    "\x9d",
    "\x1b]0;",
    "://",
    "a://b:c",
    "://@",
    "?sig=",
    "?a",
    "Authorization: ",
    "aws_secret_access_key=",
    "\u200b",
    "\r",
    "AKIA",
    "xoxb-",
    "gh",
    "-",
    "A: \n",
    "password=",
    "password: ",
    'password:"',
    "token=a",
    "secret=1",
    "api_key:",
    "mysql ",
    "mysql -",
    "a.",
    "$6$",
    "$6$a",
    '"auth":',
    "eyJa.",
    "eyJaaaaaaaaaaaa.",
    "%3DeyJ",
    "AGE-SECRET-KEY-1",
    "SK0000",
    "a\u0301",
    "\u0301",
    "AAAA",
    "a",
    " ",
  ])("is done with %j, repeated to 200,000 characters", (part) => {
    const text = part.repeat(Math.ceil(COUNT / part.length));
    expect(typeof cleanOutput(text).text).toBe("string");
    const cleaner = createStreamCleaner();
    for (let at = 0; at < text.length; at += 4096) cleaner.push(Buffer.from(text.slice(at, at + 4096)));
    cleaner.end();
  });
});
