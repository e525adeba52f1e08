import type { ServiceKind } from '#services/service/holder.ts';
import type { Actor } from '#test/harness/app.ts';
import { EXAMPLE } from '#test/harness/engine.ts';
import { makeRegistry, type ImageServer } from '#test/harness/images.ts';

/** Environment for samples. */
export interface SamplePlace {
  admin: Actor;
  environmentId: string;
  /** Registry that has every image. */
  images: Pick<ImageServer, 'url'>;
  /** Tag of images; a digest if no registry answers at its address. */
  tag: string;
}

/** Smallest service of a kind that can be deployed on the fake runtime. */
export interface Sample {
  /** Returns the body without the name. */
  body(place: SamplePlace): Promise<object> | object;
  /** Fields that an edit changes; they must change the deployment. */
  edit: object;
  /** Number of its public links, if not 1. */
  links?: number;
  /** State after a stop, if not STOPPED. */
  stopped?: string;
  /** Status of its deletion, if not 204. */
  deletion?: 202;
}

const git_repository = { url: EXAMPLE, branch: 'HEAD' };
const ports = [{ internal_port: 3000, publicly_accessible: true, protocol: 'HTTP' }];

/** Sample of each kind that can be created. A kind without a sample fails the suite. */
export const SAMPLES: Partial<Record<ServiceKind, Sample>> = {
  AGENTIC_WORKFLOW: {
    deletion: 202,
    body: () => ({ agent_prompt: 'Say what changed.', model: { type: 'CLAUDE', api_key: 'sk-never-shown-again' } }),
    edit: { agent_prompt: 'Say what is broken.' },
  },
  APPLICATION: {
    body: () => ({ git_repository, dockerfile_path: 'Dockerfile', ports }),
    edit: { cpu: 750 },
  },
  CONTAINER: {
    body: async ({ admin, images, tag }) => ({
      registry_id: await makeRegistry(admin, images),
      image_name: 'acme/web',
      tag,
      healthchecks: {},
      ports,
    }),
    edit: { memory: 256 },
  },
  DATABASE: {
    body: () => ({ type: 'POSTGRESQL', version: '18', mode: 'CONTAINER' }),
    edit: { memory: 512 },
  },
  HELM: {
    body: () => ({
      source: { git_repository: { ...git_repository, root_path: '/chart' } },
      arguments: ['--wait'],
      values_override: { set: [['replicas', '2']] },
      ports: [{ internal_port: 80, service_name: 'web' }],
    }),
    edit: { timeout_sec: 900 },
  },
  JOB: {
    body: () => ({
      source: { docker: { git_repository } },
      healthchecks: {},
      schedule: { on_start: { arguments: ['migrate'] } },
    }),
    edit: { max_nb_restart: 1 },
  },
  TERRAFORM: {
    body: () => ({
      backend: { kubernetes: {} },
      terraform_files_source: { git: { git_repository } },
      provider_version: { explicit_version: '1.11.4' },
    }),
    edit: { timeout_sec: 600 },
  },
};
