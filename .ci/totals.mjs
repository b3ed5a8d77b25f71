// Prints "PASSED FAILED" of a vitest JSON report. Runs on the system's Node.
import { readFileSync } from "node:fs";

const [path = "", status = "1"] = process.argv.slice(2);
const report = JSON.parse(readFileSync(path, "utf8"));
const unloaded = report.testResults.filter((file) => file.status === "failed" && file.assertionResults.length === 0);
const failed = report.numFailedTests + unloaded.length;
const otherwise = failed === 0 && status !== "0" ? 1 : 0;
console.log(report.numPassedTests, failed + otherwise);
