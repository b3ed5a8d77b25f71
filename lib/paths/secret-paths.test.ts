import { describe, expect, it } from "vitest";
import { isSecret } from "./secret-paths.ts";

describe("secrets", () => {
  it.each([
    "/home/a/.ssh/id_rsa",
    "/home/a/.SSH/config",
    "/root/.aws/credentials",
    "/x/.kube/config",
    "/x/.docker/config.json",
    "/x/.netrc",
    "/x/.npmrc",
    "/x/.env",
    "/x/.env.local",
    "/x/.ENV.production",
    "/etc/shadow",
    "/proc/1/environ",
    "/proc/self/task/1/environ",
    "/proc/self/fd/3",
    "/proc/1/mem",
    "/proc/kcore",
    "/x/id_ed25519",
    "/etc/ssh/ssh_host_rsa_key",
    "/x/a.pfx",
    "/x/.config/gcloud/x",
    "/x/.claude/.credentials.json",
    "/x/.codex/auth.json",
    "/x/.gemini/oauth_creds.json",
    "/x/.config/rclone/rclone.conf",
    "/x/.config/sops/age/keys.txt",
    "/x/.mozilla/firefox/a.default/logins.json",
    "/x/.config/google-chrome/Default/Cookies",
    "/x/Library/Application Support/Google/Chrome/Default/Cookies",
    "/x/.config/containers/auth.json",
    "/run/user/1000/containers/auth.json",
    "/x/.bash_history",
    "/x/.psql_history",
    "/x/.local/share/fish/fish_history",
    "/x/infra/terraform.tfstate",
    "/x/.bitcoin/wallet.dat",
  ])("has %s", (path) => {
    expect(isSecret(path.slice(1).split("/"))).toBe(true);
  });
  it.each([
    "/x/.env.example",
    "/x/env",
    "/x/.environment",
    "/x/ssh/config",
    "/etc/passwd",
    "/proc/1/status",
    "/x/id_rsa.md",
    "/x/config.json",
    "/x/kube/config",
    "/x/proc/environ",
    "/etc/ssh/ssh_host_rsa_key.pub",
    "/x/history",
    "/x/main.tf",
    "/x/.config/containers.txt",
  ])("has not %s", (path) => {
    expect(isSecret(path.slice(1).split("/"))).toBe(false);
  });
});
