import { chmod, rm, stat, writeFile } from "node:fs/promises";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { Role } from "../../gen/ts/reeve/options/v1/access_pb.ts";
import { createTokenFile } from "../../lib/auth/token-file.ts";
import { eventually } from "../../testkit/eventually.ts";
import { startTestStack, type TestStack } from "../../testkit/stack.ts";
import { readProfile } from "../profile.ts";
import { runCli } from "../run-cli.ts";
import { createFakeContext, type FakeContext, runInFake, TEST_COST } from "../testing/fake-context.ts";
import { openSealedOperator, readSealedOperator, sealedOperatorPath, writeSealedOperator } from "./sealed-file.ts";

const PASSPHRASE = "four words are good";
const OTHER = "another four words again";

let stack: TestStack;
beforeAll(async () => {
  stack = await startTestStack();
});
afterAll(() => stack.close());
beforeEach(() => writeSealedOperator(stack.dataFolder, stack.operator.REEVE_TOKEN, PASSPHRASE, TEST_COST));

interface Running {
  context: FakeContext;
  ended: Promise<number>;
}

function atTerminal(...words: string[]): Running {
  const context = createFakeContext({ env: { ...stack.owner, NO_COLOR: "1" }, terminal: true });
  return { context, ended: runCli(words, context) };
}

const sealedToken = async (passphrase: string) => {
  const sealed = await readSealedOperator(stack.dataFolder);
  return sealed && openSealedOperator(sealed, passphrase, TEST_COST);
};

/** Asks for a call that is held, and gives its approval. */
async function hold(): Promise<string> {
  const argv = ["call", "this", "exec", "--no-wait", "--argv", "touch", "--argv", "/tmp/reeve-never"];
  const { stderr } = await runInFake(argv, { env: stack.owner });
  return /(apr-\w+)/.exec(stderr)?.[1] ?? "";
}

const countOf = (text: string, context: FakeContext) => context.stderrText().split(text).length - 1;

/** Types one passphrase after the other, each when it is asked for. */
async function typeEach(context: FakeContext, passphrases: readonly string[]): Promise<void> {
  for (const [at, passphrase] of passphrases.entries()) {
    await eventually(() => expect(countOf("Operator's passphrase: ", context)).toBe(at + 1));
    context.stdin.write(`${passphrase}\n`);
  }
}

describe("the profile's token", () => {
  it("looks at everything, and calls under an agent's rules", async () => {
    const looks = [
      ["tool", "list"],
      ["device", "list"],
      ["call", "list"],
      ["approval", "list"],
      ["audit", "list"],
      ["key", "list"],
      ["policy", "show"],
    ];
    for (const words of looks) {
      const { code, stderr } = await runInFake(words, { env: stack.owner });
      expect({ words, code, stderr }).toMatchObject({ words, code: 0 });
    }
    const uname = await runInFake(["call", "this", "exec", "--argv", "uname"], { env: stack.owner });
    expect(uname.code).toBe(0);
    expect(await hold()).toMatch(/^apr-/);
  });

  it("approves, denies, locks and issues nothing by itself", async () => {
    const approval = await hold();
    for (const words of [
      ["approval", "approve", "-y", approval],
      ["approval", "deny", approval],
      ["device", "lock", "this"],
      ["device", "join-token", "laptop"],
      ["key", "rotate", "grant"],
      ["token", "create", "--role", "operator", "--name", "me"],
      ["token", "revoke", "0123456789ab"],
      ["call", "--as-operator", "this", "exec", "--argv", "id"],
    ]) {
      const { code, stderr } = await runInFake(words, { env: stack.owner });
      expect({ words, code }).toEqual({ words, code: 2 });
      expect(stderr).toContain("no terminal to ask for the passphrase on");
      expect(stderr).toContain("REEVE_TOKEN");
    }
    const token = (await readProfile(stack.dataFolder))?.token ?? "";
    const env = { ...stack.owner, REEVE_TOKEN: token };
    const claimed = await runInFake(["approval", "approve", "-y", approval], { env });
    expect([claimed.code, claimed.stderr]).toEqual([3, expect.stringContaining("operator")]);
  });

  it("cancels its own calls, and no other's", async () => {
    const argv = ["call", "this", "exec", "--no-wait", "--argv", "touch", "--argv", "x", "--call-id"];
    await runInFake([...argv, "of-the-owner"], { env: stack.owner });
    const { stdout } = await runInFake([...argv, "of-the-agent", "--json"], { env: stack.agent });
    expect((await runInFake(["call", "cancel", "of-the-owner"], { env: stack.owner })).code).toBe(0);
    const other = await runInFake(["call", "cancel", JSON.parse(stdout).id], { env: stack.owner });
    expect([other.code, other.stderr]).toEqual([2, expect.stringContaining("this needs an operator")]);
  });
});

describe("the passphrase", () => {
  it("approves a call that is held, right where it was asked for", async () => {
    const { context, ended } = atTerminal("call", "this", "exec", "--", "sh", "-c", "printf 'approved here'");
    await context.typeAfter("Approve? [y/N/d(etails)] ", "y\n");
    await context.typeAfter("Operator's passphrase: ", `${PASSPHRASE}\n`);
    expect([await ended, context.stdoutText()]).toEqual([0, "approved here"]);
    expect(context.stderrText()).not.toContain(PASSPHRASE);
  });

  it("is not needed to take one's own call back", async () => {
    const { context, ended } = atTerminal("call", "this", "exec", "--argv", "touch", "--argv", "x");
    await context.typeAfter("Approve? [y/N/d(etails)] ", "n\n");
    expect(await ended).toBe(7);
    expect(context.stderrText()).not.toContain("passphrase");
  });

  it("is asked for once, however many calls are decided", async () => {
    const [one, two] = [await hold(), await hold()];
    const { context } = atTerminal("approval", "watch");
    await context.typeAfter("Approve? ", "y\n");
    await context.typeAfter("Operator's passphrase: ", `${PASSPHRASE}\n`);
    for (let asked = 2; ![one, two].every((id) => context.stdoutText().includes(`${id} approved`)); asked++) {
      await eventually(() => expect(countOf("Approve? ", context)).toBeGreaterThanOrEqual(asked));
      context.stdin.write("y\n");
      await eventually(() => expect(context.stdoutText().split(" approved by ").length).toBeGreaterThan(asked));
    }
    expect(countOf("Operator's passphrase: ", context)).toBe(1);
  });

  it("can be mistyped twice", async () => {
    const { context, ended } = atTerminal("approval", "deny", await hold());
    await typeEach(context, ["wrong", "wrong again", PASSPHRASE]);
    expect(await ended).toBe(0);
  });

  it("opens nothing after three wrong ones", async () => {
    const { context, ended } = atTerminal("approval", "deny", await hold());
    await typeEach(context, ["wrong", "wrong again", "wrong still"]);
    expect(await ended).toBe(2);
    expect(context.stderrText()).toContain("reeve operator replace");
  });

  it("lets one call be made as an operator", async () => {
    const { context, ended } = atTerminal("call", "--as-operator", "this", "exec", "--argv", "printf", "--argv", "x");
    await context.typeAfter("Operator's passphrase: ", `${PASSPHRASE}\n`);
    expect([await ended, context.stdoutText()]).toEqual([0, "x"]);
  });
});

describe("reeve operator", () => {
  it("seals a token, which stands in no file in the clear", async () => {
    await rm(sealedOperatorPath(stack.dataFolder));
    const { context, ended } = atTerminal("operator", "seal");
    await context.typeAfter("The operator's token: ", `${stack.operator.REEVE_TOKEN}\n`);
    await context.typeAfter("New passphrase: ", `${OTHER}\n`);
    await context.typeAfter("Once more: ", `${OTHER}\n`);
    expect(await ended).toBe(0);
    expect(await sealedToken(OTHER)).toBe(stack.operator.REEVE_TOKEN);
    expect((await stat(sealedOperatorPath(stack.dataFolder))).mode & 0o777).toBe(0o600);
  });

  it("seals nothing but an operator's token", async () => {
    const { context, ended } = atTerminal("operator", "seal");
    await context.typeAfter("The operator's token: ", `${stack.agent.REEVE_TOKEN}\n`);
    expect(await ended).toBe(2);
    expect(context.stderrText()).toContain("not an operator's token");
  });

  it("refuses a short passphrase, and two that differ", async () => {
    const { context, ended } = atTerminal("operator", "passphrase");
    await context.typeAfter("Operator's passphrase: ", `${PASSPHRASE}\n`);
    await context.typeAfter("New passphrase: ", "short\n");
    await context.typeAfter("at least 12 characters", `${OTHER}\n`);
    await context.typeAfter("Once more: ", "something else\n");
    await context.typeAfter("not the same", "\n");
    expect(await ended).toBe(2);
    expect(await sealedToken(PASSPHRASE)).toBe(stack.operator.REEVE_TOKEN);
  });

  it("changes the passphrase, and keeps the token", async () => {
    const { context, ended } = atTerminal("operator", "passphrase");
    await context.typeAfter("Operator's passphrase: ", `${PASSPHRASE}\n`);
    await context.typeAfter("New passphrase: ", `${OTHER}\n`);
    await context.typeAfter("Once more: ", `${OTHER}\n`);
    expect(await ended).toBe(0);
    expect(await sealedToken(OTHER)).toBe(stack.operator.REEVE_TOKEN);
    expect(await sealedToken(PASSPHRASE)).toBeUndefined();
  });

  it("lets the owner in again who has lost passphrase and token, and the old token out", async () => {
    const file = `${stack.dataFolder}/tokens.json`;
    const lost = createTokenFile(file).issueToken({ name: "owner", roles: [Role.OPERATOR] }).token;
    await writeSealedOperator(stack.dataFolder, lost, PASSPHRASE, TEST_COST);
    const { context, ended } = atTerminal("operator", "replace");
    await context.typeAfter("[y/N] ", "y\n");
    await context.typeAfter("New passphrase: ", `${OTHER}\n`);
    await context.typeAfter("Once more: ", `${OTHER}\n`);
    expect(await ended).toBe(0);
    // The one above looks at the file once a second.
    const tokens = createTokenFile(file);
    expect(tokens.authenticate(`Bearer ${await sealedToken(OTHER)}`)?.roles).toEqual([Role.OPERATOR]);
    expect(tokens.listTokens().some(({ id }) => lost.includes(id))).toBe(false);
  });

  it("issues and revokes tokens by an operator's token or the passphrase", async () => {
    const words = ["token", "create", "--role", "agent", "--name", "bot"];
    expect((await runInFake(words, { env: stack.operator })).code).toBe(0);
    expect((await runInFake(words, { env: stack.agent })).stderr).toContain("not an operator's token");
    const { context, ended } = atTerminal(...words);
    await context.typeAfter("Operator's passphrase: ", `${PASSPHRASE}\n`);
    expect(await ended).toBe(0);
  });

  it.each([
    ["damaged", "{", 0o600, "is damaged"],
    ["open to others", "{}", 0o644, "may be read by others"],
  ])("opens no file that is %s", async (_, text, mode, problem) => {
    const path = sealedOperatorPath(stack.dataFolder);
    await writeFile(path, text);
    await chmod(path, mode);
    const { code, stderr } = await runInFake(["device", "lock", "this"], { env: stack.owner });
    expect([code, stderr]).toEqual([2, expect.stringContaining(problem)]);
    await rm(path);
  });

  it("says what to do where no token is known at all", async () => {
    await rm(sealedOperatorPath(stack.dataFolder));
    const { code, stderr } = await runInFake(["device", "lock", "this"], { env: stack.owner });
    expect(code).toBe(2);
    for (const way of ["REEVE_TOKEN", "reeve operator seal", "reeve operator replace"]) expect(stderr).toContain(way);
  });
});
