import type { Kind, ShownKind } from '#services/kind.ts';
import { agenticWorkflow } from '#services/kinds/agentic-workflow/index.ts';
import { application } from '#services/kinds/application/index.ts';
import { argoCdApp } from '#services/kinds/argocd-app/index.ts';
import { database } from '#services/kinds/database/index.ts';
import { helm } from '#services/kinds/helm/index.ts';
import { job } from '#services/kinds/job/index.ts';
import { terraform } from '#services/kinds/terraform/index.ts';
import { container } from '#services/kinds/container/index.ts';

/** Kinds of service that can be created here. A further kind is a folder, a line here and its facts (kernel/service-kinds.ts). */
export const KINDS: Kind[] = [application, container, database, helm, job, terraform, agenticWorkflow];

/** Read-only kinds, whose services are created and run elsewhere. */
export const READ_KINDS: ShownKind[] = [argoCdApp];
