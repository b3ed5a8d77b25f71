import { ApprovalSchema, ApprovalStateSchema } from "../../gen/ts/reeve/policy/v1/approval_pb.ts";
import { enumName } from "../print/enum-name.ts";
import { visibleLine } from "../print/escape.ts";
import { jsonLine, wholeJson } from "../print/json.ts";
import { namedId } from "../print/named-id.ts";
import { canAsk } from "../print/prompt.ts";
import { styleFor } from "../print/style.ts";
import type { Session } from "../session.ts";
import type { World } from "../world.ts";
import { createAskQueue } from "./ask-queue.ts";
import { whereText } from "./card.ts";
import { isPending } from "./decide.ts";

/**
 * Shows approvals as they change, the pending ones first, until the stream ends: as JSON a line each, otherwise in
 * words. On a terminal each pending one is asked about, one at a time, and a question that somebody else has answered
 * is taken back.
 */
export async function watchApprovals(session: Session, json: boolean, world: World): Promise<void> {
  const mayAsk = canAsk(world) && !json && (await session.operator.isPossible());
  const asking = mayAsk ? createAskQueue(session, world) : undefined;
  const style = styleFor(world, world.stdout);
  for await (const { approval } of session.approvals.watchApprovals({})) {
    if (approval === undefined) continue;
    if (json) {
      world.stdout.write(jsonLine(wholeJson(ApprovalSchema, approval)));
      continue;
    }
    const state = enumName(ApprovalStateSchema, approval.status?.state);
    const { decidedBy = "", decidedByName = "" } = approval.status ?? {};
    const by = decidedBy === "" ? "" : ` by ${namedId(decidedByName, decidedBy)}`;
    const line = visibleLine(
      `${approval.id} ${state}${by}: ${approval.spec?.tool} on ${approval.spec && whereText(approval.spec)}`,
    );
    world.stdout.write(`${isPending(approval) ? style.yellow(line) : line}\n`);
    if (isPending(approval)) void asking?.ask(approval.id);
    else asking?.withdraw(approval.id);
  }
}
