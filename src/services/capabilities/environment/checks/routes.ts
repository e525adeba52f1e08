import { defineRoute, type Route } from '#platform/http/route.ts';
import { environmentTarget } from '#resources/environment/index.ts';
import {
  Checked,
  ContainerImageCheckRequest,
  DockerfileCheck,
  DockerfileCheckRequest,
  DockerfileGenerationRequest,
  GeneratedDockerfile,
  GitFileCheckRequest,
  HelmRepositoryCheckRequest,
} from '#services/capabilities/environment/checks/schema.ts';
import {
  checkContainerImage,
  checkDockerfile,
  checkGitFiles,
  checkHelmChart,
  generateDockerfile,
  type CheckNeeds,
} from '#services/capabilities/environment/checks/service.ts';

/** Options that all checks share. They use the organization's tokens, so they require the right to create a service. */
const common = {
  method: 'POST',
  tag: 'Environment',
  target: environmentTarget,
  action: 'service.create',
  transaction: false,
} as const;

/** Makes the routes that check the source of a service before the service is created. */
export const checkRoutes = (needs: CheckNeeds): Route[] => [
  defineRoute({
    ...common,
    errors: [502],
    id: 'checkDockerfile',
    path: '/environment/{environmentId}/checkDockerfile',
    summary: 'Read a Dockerfile of a repository',
    description:
      'Answers what the Dockerfile needs, such as its arguments. 400 if there is none at that path; nothing is stored.',
    body: DockerfileCheckRequest,
    answer: { status: 200, body: DockerfileCheck },
    handler: (call) => checkDockerfile(call, needs, call.body),
  }),
  defineRoute({
    ...common,
    errors: [502],
    id: 'generateDockerfile',
    path: '/environment/{environmentId}/generateDockerfile',
    summary: 'Make the Dockerfile that a repository without one is built with',
    description:
      'Answers what the project at root_path is recognised as, and the Dockerfile to commit where it should be changed. 400 with what would help if it is not recognised; nothing is stored.',
    body: DockerfileGenerationRequest,
    answer: { status: 200, body: GeneratedDockerfile },
    handler: (call) => generateDockerfile(call, needs, call.body),
  }),
  defineRoute({
    ...common,
    errors: [502],
    id: 'checkGitFile',
    path: '/environment/{environmentId}/checkGitFile',
    summary: 'Check that a repository has files',
    description: '400 names each file that the branch does not have; nothing is stored.',
    body: GitFileCheckRequest,
    answer: { status: 200, body: Checked },
    handler: (call) => checkGitFiles(call, needs, call.body),
  }),
  defineRoute({
    ...common,
    errors: [502],
    id: 'checkHelmRepository',
    path: '/environment/{environmentId}/checkHelmRepository',
    summary: 'Check that a folder of a repository is a Helm chart',
    description: '400 unless the folder holds a chart; nothing is stored.',
    body: HelmRepositoryCheckRequest,
    answer: { status: 200, body: Checked },
    handler: (call) => checkHelmChart(call, needs, call.body),
  }),
  defineRoute({
    ...common,
    errors: [502],
    id: 'checkContainerImage',
    path: '/environment/{environmentId}/checkContainerImage',
    summary: 'Check that a registry has an image',
    description: 'Asks the registry with its stored credentials. 400 if it does not have the image; nothing is stored.',
    body: ContainerImageCheckRequest,
    answer: { status: 200, body: Checked },
    handler: (call) => checkContainerImage(call, needs, call.body),
  }),
];
