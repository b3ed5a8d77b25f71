import { create } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import { type ScheduleService, ScheduleSpecSchema } from "../../../gen/ts/reeve/schedule/v1/schedule_service_pb.ts";
import { principalOf } from "../../../lib/server/context.ts";
import type { Schedules } from "./schedules.ts";

/** The RPCs of schedules. */
export function scheduleRoutes(schedules: Schedules): ServiceImpl<typeof ScheduleService> {
  return {
    createSchedule: async ({ name, spec = create(ScheduleSpecSchema) }, context) => ({
      schedule: await schedules.create(name, spec, principalOf(context)),
    }),
    getSchedule: async ({ name }) => ({ schedule: await schedules.get(name) }),
    listSchedules: (request) => schedules.list(request),
    pauseSchedule: async ({ name }) => ({ schedule: await schedules.pause(name) }),
    resumeSchedule: async ({ name }) => ({ schedule: await schedules.resume(name) }),
    async deleteSchedule({ name }) {
      await schedules.remove(name);
      return {};
    },
    runSchedule: async ({ name }) => ({ firing: await schedules.run(name) }),
  };
}
