import { expect, test } from "vitest";
import { enrolledEnvironment, settingsToKeep } from "./enrolled.ts";
import type { DeviceEnrollment } from "./enrollment-file.ts";

const enrollment: DeviceEnrollment = {
  id: "enr-1",
  name: "web1",
  labels: { role: "web" },
  urls: ["https://one.example", "https://two.example"],
  domain: "example.org",
  settings: { REEVE_DEVICE_MODE: "all", REEVE_DEVICE_READ_ROOTS: "/srv" },
};

test("what says what the machine offers is kept; names, secrets and addresses are not", () => {
  const env = {
    REEVE_DEVICE_MODE: "all",
    REEVE_DEVICE_NAME: "x",
    REEVE_TOKENS_FILE: "/t",
    REEVE_DEVICE_DENIED: "",
    PATH: "/bin",
  };
  expect(settingsToKeep(env)).toEqual({ REEVE_DEVICE_MODE: "all" });
});

test("what is said now goes over what was kept, and an empty variable says nothing", () => {
  const env = enrolledEnvironment("/state", enrollment, { REEVE_DEVICE_MODE: "user", REEVE_DEVICE_READ_ROOTS: "" });
  expect(env).toMatchObject({ REEVE_DEVICE_MODE: "user", REEVE_DEVICE_READ_ROOTS: "/srv" });
  expect(env.REEVE_DEVICE_REGISTRY_URL).toBe("https://one.example,https://two.example");
  expect(
    enrolledEnvironment("/state", enrollment, { REEVE_DEVICE_REGISTRY_URL: "https://new" }).REEVE_DEVICE_REGISTRY_URL,
  ).toBe("https://new");
});

test("who the device is comes from its enrollment alone", () => {
  const env = enrolledEnvironment("/state", enrollment, {
    REEVE_DEVICE_NAME: "other",
    REEVE_DEVICE_LABELS: "role=db",
    REEVE_GRANT_KEY: "forged",
    REEVE_TLS_KEY_FILE: "/elsewhere",
    REEVE_TRUST_DOMAIN: "elsewhere",
  });
  expect(env).toMatchObject({
    REEVE_DEVICE_NAME: "web1",
    REEVE_DEVICE_LABELS: "role=web",
    REEVE_GRANT_KEY: "",
    REEVE_GRANT_KEY_FILE: "/state/enrollments/enr-1/grant.pub",
    REEVE_TLS_CERT_FILE: "/state/enrollments/enr-1/tls.crt",
    REEVE_TLS_KEY_FILE: "/state/enrollments/enr-1/tls.key",
    REEVE_TLS_CA_FILE: "/state/enrollments/enr-1/authorities.pem",
    REEVE_TRUST_DOMAIN: "example.org",
  });
});
