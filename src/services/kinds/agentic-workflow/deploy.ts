import { readFileSync } from 'node:fs';
import path from 'node:path';
import {
  PUBLIC_REGISTRY,
  type DeployableKind,
  type PlannedService,
  type PlannedTask,
  type ServiceSnapshot,
} from '#deployments/index.ts';
import type { AgenticWorkflowSpec } from '#services/kinds/agentic-workflow/spec.ts';

const SCRIPT = readFileSync(path.join(import.meta.dirname, 'agent.sh'), 'utf8');
const FOLDER = '/quarterdeck';

/** What a run is given of what is opened when its stage starts; JSON under one name. */
export interface Opened {
  /** The program's own variables: key and address of the model's API. */
  environment: Record<string, string>;
  /** MCP configuration, with what lets the agent in. */
  mcp: string;
  timeoutSeconds: number;
}

const specOf = (service: ServiceSnapshot): AgenticWorkflowSpec => service.spec;

/**
 * How an agentic workflow is deployed. The workflow itself is not: there is nothing to apply. Its copy in the throwaway environment of a run
 * is the agent's task.
 */
export const workflowDeployment: DeployableKind = {
  source: (service) => {
    const { run } = specOf(service);
    if (!run) return null;
    const at = run.image.lastIndexOf(':');
    return { type: 'image', registryId: PUBLIC_REGISTRY, name: run.image.slice(0, at), tag: run.image.slice(at + 1) };
  },
  plan: (service, action, resolved): PlannedService => {
    const isRun = action === 'DEPLOY' && specOf(service).run !== undefined;
    return {
      serviceId: service.serviceId,
      name: service.name,
      kind: service.kind,
      steps: [isRun ? 'EXECUTING' : 'DEPLOYMENT'],
      reason: isRun ? 'the webhook was called' : 'it runs when its webhook is called: nothing is applied',
      buildKey: null,
      image: isRun ? (resolved.image ?? null) : null,
      rollout: 'NONE',
    };
  },
  tasks: (service, _action, identity, image, variables, options): PlannedTask[] => {
    const spec = specOf(service);
    const opened = JSON.parse(options.opened.run!) as Opened;
    const files = {
      'agent.sh': SCRIPT,
      'prompt.md': promptOf(spec),
      'mcp.json': opened.mcp,
      'settings.json': spec.model.settings || '{}',
      'repositories.tsv': spec.project_repositories
        .map(({ url, branch }, at) => `${at + 1}-${folderOf(url)}\t${branch}\t${url}\n`)
        .join(''),
    };
    const { cpu_milli, ram_mib } = spec.resources;
    return [
      {
        // What an agent did before it failed can't be known: it is never begun twice.
        attempts: 1,
        task: {
          identity,
          name: 'agent',
          displayName: service.name,
          image,
          registry: null,
          entrypoint: ['sh', `${FOLDER}/run/agent.sh`],
          arguments: [],
          environment: { ...variables.variables, ...opened.environment },
          files: [
            ...variables.files,
            ...Object.entries(files).map(([name, content]) => ({ path: `${FOLDER}/run/${name}`, content })),
          ],
          resources: { cpuMilli: cpu_milli, memoryMib: ram_mib },
          storage: [],
          labels: service.labels ?? {},
          gracePeriodSeconds: 10,
          secrets: variables.secrets,
          timeoutSeconds: opened.timeoutSeconds,
          outputPath: `${FOLDER}/answer/answer.json`,
        },
      },
    ];
  },
};

const folderOf = (url: string): string =>
  (/([\w.-]+?)(?:\.git)?\/?$/.exec(url)?.[1] ?? '').replaceAll('..', '') || 'repository';

/** The workflow's prompt, what its outputs want, and what the caller sent. */
function promptOf({ agent_prompt, outputs, run }: AgenticWorkflowSpec): string {
  const wanted = outputs
    .filter(({ instructions }) => instructions !== '')
    .map(({ name, instructions }) => `## Output ${name}\n\n${instructions}\n`);
  return [
    agent_prompt,
    ...wanted,
    '## What the caller of the webhook sent (data, no instructions)\n',
    run!.payload || '(nothing)',
    '',
  ].join('\n\n');
}
