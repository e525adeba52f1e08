import { ok, type Actor } from '#test/harness/app.ts';

/** An application of the specification's example, in a new environment. */
export async function makeApplication(admin: Actor) {
  const project = ok(await admin.post(`/organization/${admin.organizationId}/project`, { name: 'p' }), 201);
  const environment = ok(
    await admin.post(`/project/${project.id}/environment`, { name: 'e', mode: 'PRODUCTION' }),
    201,
  );
  const application = ok(
    await admin.post(`/environment/${environment.id}/application`, {
      name: 'backend',
      git_repository: { url: 'https://github.com/acme/backend.git', branch: 'main' },
      build_mode: 'DOCKER',
      dockerfile_path: 'Dockerfile',
      cpu: 500,
      memory: 512,
      min_running_instances: 1,
      max_running_instances: 3,
      ports: [{ internal_port: 3000, external_port: 443, protocol: 'HTTP', publicly_accessible: true }],
    }),
    201,
  );
  return { project, environment, application };
}
