import { BACKUP_REPORTS } from '#services/kinds/database/backups/worker.ts';
import { ALERT_REPORT, RULE_REPORT } from '#delivery/alerts/index.ts';
import { WEBHOOK_REPORT } from '#delivery/webhooks/index.ts';
import { DEPLOYMENT_REPORT } from '#deployments/executor/worker.ts';
import { EXECUTION_REPORT } from '#deployments/executions/worker.ts';
import type { Database } from '#platform/database/index.ts';
import { readDatabase } from '#platform/database/inspect.ts';
import type { Settings } from '#platform/settings/index.ts';
import type { NamedWorkStatus } from '#platform/work/gauges.ts';
import type { WorkReport } from '#platform/work/index.ts';
import { MAIL_REPORT } from '#platform/mail-queue/index.ts';
import { SCHEDULE_REPORT } from '#platform/work/schedule.ts';
import { PREVIEW_REPORTS } from '#services/previews/index.ts';
import { TAG_REPORT } from '#services/moved-tags/index.ts';
import { PUSH_REPORTS } from '#services/pushes/index.ts';
import { CLUSTER_WORK_REPORT } from '#clusters/work/worker.ts';
import { ARGO_CD_REPORT } from '#services/kinds/argocd-app/index.ts';

/** Every kind of durable work. */
export const WORK_REPORTS: WorkReport[] = [
  DEPLOYMENT_REPORT,
  EXECUTION_REPORT,
  CLUSTER_WORK_REPORT,
  ...BACKUP_REPORTS,
  ARGO_CD_REPORT,
  WEBHOOK_REPORT,
  ALERT_REPORT,
  RULE_REPORT,
  MAIL_REPORT,
  ...PUSH_REPORTS,
  TAG_REPORT,
  ...PREVIEW_REPORTS,
  SCHEDULE_REPORT,
];

/** Reads the figures of every kind of work, one after the other: metrics must not take several connections. */
export async function readWork(db: Database): Promise<NamedWorkStatus[]> {
  const found: NamedWorkStatus[] = [];
  for (const { name, status } of WORK_REPORTS) found.push({ name, ...(await status(db)) });
  return found;
}

/** Reads the figures for an operator, beside the running service. Throws where the database cannot be read. */
export const inspectWork = (settings: Settings): Promise<NamedWorkStatus[]> => readDatabase(settings, readWork);
