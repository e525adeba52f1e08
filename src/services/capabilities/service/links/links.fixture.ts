import { newId } from '#kernel/ids.ts';
import { ok, type Actor } from '#test/harness/app.ts';

export const PORTS = [
  { internal_port: 3000, publicly_accessible: true, name: 'web', is_default: true },
  { internal_port: 9000, publicly_accessible: true, name: 'admin' },
  { internal_port: 9001, publicly_accessible: false, name: 'metrics' },
  { internal_port: 5432, publicly_accessible: true, name: 'db', protocol: 'TCP' },
];

export async function makeEnvironment(admin: Actor) {
  const project = ok(await admin.post(`/organization/${admin.organizationId}/project`, { name: newId() }), 201);
  return ok(await admin.post(`/project/${project.id}/environment`, { name: 'dev' }), 201).id as string;
}

export const makeApplication = async (admin: Actor, environmentId: string, name: string, ports: object[]) =>
  ok(
    await admin.post(`/environment/${environmentId}/application`, {
      name,
      ports,
      git_repository: { url: 'https://github.com/acme/shop.git' },
    }),
    201,
  );
