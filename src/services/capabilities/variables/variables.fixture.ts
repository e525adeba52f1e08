import { ok, type Actor, type Answer } from '#test/harness/app.ts';

/** A project with an environment of two applications: places for variables from high to low, and a sibling of the lowest. */
export interface Tree {
  project: string;
  environment: string;
  application: string;
  sibling: string;
}

export const LEVELS = ['project', 'environment', 'application'] as const;
export type Level = (typeof LEVELS)[number];

let count = 0;

export async function makeTree(admin: Actor): Promise<Tree> {
  const name = `p${++count}`;
  const project = ok(await admin.post(`/organization/${admin.organizationId}/project`, { name }), 201).id;
  const environment = ok(await admin.post(`/project/${project}/environment`, { name: 'dev' }), 201).id;
  const [application, sibling] = [
    await makeApplication(admin, environment, 'web'),
    await makeApplication(admin, environment, 'api'),
  ];
  return { project, environment, application, sibling };
}

export async function makeApplication(admin: Actor, environment: string, name: string): Promise<string> {
  const body = {
    name,
    git_repository: { url: 'https://github.com/acme/shop.git', branch: 'main' },
    ports: [{ internal_port: 3000, external_port: 443, protocol: 'HTTP', publicly_accessible: true }],
  };
  return ok(await admin.post(`/environment/${environment}/application`, body), 201).id;
}

/** Paths of a level's variables or secrets. */
export const pathOf = (tree: Tree, level: Level, sort: 'environmentVariable' | 'secret' = 'environmentVariable') =>
  `/${level}/${tree[level]}/${sort}`;

/** The record with a key in a list, or undefined. */
export const listed = async (actor: Actor, path: string, key: string) =>
  ok(await actor.get(path), 200).results.find((one: { key: string }) => one.key === key);

export const messageOf = (answer: Answer, status: number): string => ok(answer, status).message;
