import type { Platform } from '#platform/context.ts';
import { WorkLoop, type WorkKind } from '#platform/work/index.ts';
import { ARGO_CD } from '#resources/argo-cd/index.ts';
import * as claims from '#services/kinds/argocd-app/claims.ts';
import { syncApps } from '#services/kinds/argocd-app/sync.ts';

/** Number of Argo CDs that a process reads at the same time. A slow one delays few others. */
const AT_ONCE = 4;

const argoCdWork = (platform: Platform): WorkKind<claims.Claim> => ({
  name: claims.ARGO_CD_REPORT.name,
  leaseSeconds: 15,
  slots: AT_ONCE,
  pollMs: 5_000,
  channel: ARGO_CD,
  claim: (db, request) => claims.claimDue(db, request),
  renew: claims.renew,
  giveBack: claims.giveBack,
  run: (claim, { signal }) => syncApps(platform, claim, signal),
  fields: ({ organization_id, id }) => ({ organizationId: organization_id, argoCdId: id }),
});

/** Makes the loop that reads every Argo CD again and again, in any number of processes. */
export const createArgoCdLoop = (platform: Platform, nodeId: string): WorkLoop<claims.Claim> =>
  new WorkLoop(argoCdWork(platform), { platform, nodeId });
