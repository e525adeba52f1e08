import { spawnSync } from 'node:child_process';
import path from 'node:path';
import { tokenFile } from '#clusters/first-steps.ts';
import type { Settings } from '#platform/settings/index.ts';

/** Folder of the example application. */
const EXAMPLE = path.join(import.meta.dirname, '../../examples/hello');

/** Returns the branch of the example's repository. A clone may be at a commit without a branch. */
function exampleBranch(): string {
  const result = spawnSync(
    'git',
    ['-c', 'safe.directory=*', '-C', EXAMPLE, 'symbolic-ref', '--short', '--quiet', 'HEAD'],
    { encoding: 'utf8' },
  );
  return result.stdout?.trim() || 'HEAD';
}

/** Body that creates the example application. */
export const exampleApplication = () => ({
  name: 'hello',
  git_repository: { url: EXAMPLE, branch: exampleBranch() },
  build_mode: 'DOCKER',
  dockerfile_path: 'Dockerfile',
  ports: [{ internal_port: 3000, publicly_accessible: true, protocol: 'HTTP' }],
  healthchecks: {
    readiness_probe: { type: { http: { port: 3000, path: '/' } }, initial_delay_seconds: 0, period_seconds: 1 },
  },
});

/**
 * Returns `curl` commands that deploy the example in a new project and end with a request to its URL. Each paste creates another project.
 */
export function firstDeployment(url: string, settings: Settings, organizationId: string): string {
  const body = JSON.stringify(exampleApplication());
  return `QD=${url}
AUTH="Authorization: Token $(cat ${tokenFile(settings)})"; JSON='Content-Type: application/json'
id() { sed -E 's/^\\{"id":"([^"]+)".*/\\1/'; }
PROJECT=$(curl -sS -H "$AUTH" -H "$JSON" "$QD/organization/${organizationId}/project" -d '{"name":"first '$(date +%s)'"}' | id)
ENVIRONMENT=$(curl -sS -H "$AUTH" -H "$JSON" "$QD/project/$PROJECT/environment" -d '{"name":"production","mode":"PRODUCTION"}' | id)
APPLICATION=$(curl -sS -H "$AUTH" -H "$JSON" "$QD/environment/$ENVIRONMENT/application" -d '${body}' | id)
curl -sS -H "$AUTH" -X POST "$QD/application/$APPLICATION/deploy?wait=120"; echo
curl -sS "http://app-z$(echo $APPLICATION | cut -c1-8).${settings.proxyDomain}:${settings.proxyPort}/"`;
}
