import type { Docker } from "../../../../gen/ts/reeve/tools/v1/docker_pb.ts";
import type { DockerOptions } from "../docker/engine.ts";
import { createClient } from "../docker.ts";
import { programFailed } from "../outcome.ts";
import type { ToolPreviews } from "../tool.ts";

/** What is asked of the engine, one on a line: no value of a container holds a line break. */
const ASKED = ["Id", "Name", "Config.Image", "Image", "State.Status", "State.StartedAt"];

/** What a container's name stands for: the container itself, its image, its state, and when it was started. */
export function createDockerPreviews(options: DockerOptions = {}): ToolPreviews<typeof Docker> {
  const docker = createClient(options);
  return {
    async exec({ container }, context) {
      const format = ASKED.map((field) => `{{.${field}}}`).join("\n");
      const args = ["container", "inspect", "--format", format, "--", container];
      const { program, run } = await docker(context, { tool: "docker.exec", args, live: false });
      if (run.exitCode !== 0 && /no such (?:container|object)/i.test(run.stderr))
        return [{ name: "container", value: "there is none with this name" }];
      if (run.exitCode !== 0) throw programFailed(program, run);
      const [id = "", name = "", image = "", imageId = "", state = "", started = ""] = run.stdout.split("\n");
      return [
        { name: "container", value: `${name.replace(/^\//, "")} (${id})` },
        { name: "image", value: `${image} (${imageId})` },
        { name: "state", value: state },
        { name: "started", value: started },
      ];
    },
  };
}
