import type { ClientConfig } from 'pg';
import type { Part } from './processes.ts';

/** Data that the measurements work on. */
export interface Seed {
  url: string;
  bareUrl: string;
  token: string;
  organizationId: string;
  projects: number;
  /** Has the first 100 of the environments. */
  projectId: string;
  /** Each has one application. */
  environmentIds: string[];
}

const PROJECTS = 3;
const ENVIRONMENTS = 100;

/** Address of the measured service and of its database, with a token. */
export interface Place extends Pick<Seed, 'url' | 'token' | 'organizationId'> {
  database: ClientConfig;
}

/** Makes the projects, environments and applications through the API. */
export async function seed(service: Part, bare: Part): Promise<Seed> {
  const place = await service.ask<Place>('place');
  await service.ask('deployCluster');
  const post = makingWith(place);
  const projectIds: string[] = [];
  const environmentIds: string[] = [];
  for (let project = 0; project < PROJECTS; project++) {
    const projectId = await post(`/organization/${place.organizationId}/project`, { name: `measured ${project}` });
    projectIds.push(projectId);
    for (let n = 0; n < ENVIRONMENTS; n++) {
      const id = await post(`/project/${projectId}/environment`, { name: `environment ${n}` });
      await post(`/environment/${id}/application`, APPLICATION);
      environmentIds.push(id);
    }
  }
  const { url, token, organizationId } = place;
  const bareUrl = await bare.ask<string>('open', place.database);
  return { url, bareUrl, token, organizationId, projects: PROJECTS, projectId: projectIds[0]!, environmentIds };
}

/** Makes things by the API, and answers their ids. */
export const makingWith =
  ({ url, token }: Pick<Place, 'url' | 'token'>) =>
  async (path: string, body: unknown): Promise<string> => {
    const answer = await fetch(url + path, {
      method: 'POST',
      headers: { authorization: `Token ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    if (!answer.ok) throw new Error(`${path} answered ${answer.status}: ${await answer.text()}`);
    return ((await answer.json()) as { id: string }).id;
  };

/** The application that each environment has. */
export const APPLICATION = {
  name: 'hello',
  git_repository: { url: 'https://git.example/hello.git', branch: 'main' },
  dockerfile_path: 'Dockerfile',
  ports: [{ internal_port: 3000, publicly_accessible: true, protocol: 'HTTP' }],
};
