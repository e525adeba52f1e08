import type { Kind } from '#services/kind.ts';
import { workflowDeployment } from '#services/kinds/agentic-workflow/deploy.ts';
import { workflowHooks } from '#services/kinds/agentic-workflow/hooks.ts';
import { listRuns } from '#services/kinds/agentic-workflow/queries.ts';
import { agenticWorkflowRoutes } from '#services/kinds/agentic-workflow/routes.ts';
import { workflowWebhookRoutes } from '#services/kinds/agentic-workflow/webhook.ts';
import {
  AgenticWorkflow,
  AgenticWorkflowRequest,
  type AgenticWorkflowInput,
} from '#services/kinds/agentic-workflow/schema.ts';
import {
  copyWorkflowSpec,
  toWorkflowSpec,
  toWorkflowView,
  type AgenticWorkflowSpec,
} from '#services/kinds/agentic-workflow/spec.ts';

/** Agent that runs once for each call of a webhook. */
export const agenticWorkflow: Kind<AgenticWorkflowSpec, AgenticWorkflowInput & { name: string }> = {
  kind: 'AGENTIC_WORKFLOW',
  path: 'agenticWorkflow',
  tag: 'AgenticWorkflow',
  listTag: 'Agentic Workflows',
  defaultStage: 'JOB DEFAULT',
  schemas: { create: AgenticWorkflowRequest, edit: AgenticWorkflowRequest, answer: AgenticWorkflow },
  operations: [
    'listAgenticWorkflow',
    'createAgenticWorkflow',
    'getAgenticWorkflow',
    'editAgenticWorkflow',
    'listAgenticWorkflowDeploymentHistoryV2',
  ],
  toSpec: toWorkflowSpec,
  toView: toWorkflowView,
  deployment: workflowDeployment,
  routes: () => [...agenticWorkflowRoutes, ...workflowWebhookRoutes(agenticWorkflow)],
  // The workflow itself runs nowhere; its runs do.
  requires: ({ run }) => (run ? ['tasks', 'egress', run.image === null ? 'machine-programs' : 'registry-images'] : []),
  hooks: workflowHooks,
  historyOf: async ({ db }, { organizationId, id }) =>
    (await listRuns(db, { organizationId }, id)).map(({ service_id }) => service_id),
  capabilities: {
    clone: {
      copySpec: copyWorkflowSpec,
      // Headers of outputs may be credentials.
      hasSecrets: ({ webhook_secret, model, outputs }) =>
        webhook_secret !== null || model.api_key !== null || outputs.some(({ headers }) => headers.length > 0),
    },
  },
};
