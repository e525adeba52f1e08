/** The whole program on a data directory of its own, with the webhooks of repositories. */
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { pino } from 'pino';
import { start } from '#app/start.ts';
import { newId } from '#kernel/ids.ts';
import { inTransaction, systemContext } from '#platform/context.ts';
import { sql } from '#platform/database/index.ts';
import { readSettings } from '#platform/settings/index.ts';
import { insertCluster } from '#resources/cluster/index.ts';
import { makeAdministrator, makeAdministratorToken, makeOrganization } from '#resources/organization/index.ts';
import { gitWebhookPath, gitWebhookSecretPlace } from '#services/capabilities/service/git-webhook/index.ts';
import { offer } from './processes.ts';
import { removeEverything } from '#test/harness/remove-everything.ts';

/** Access to an organization. */
export interface Tenant {
  url: string;
  organizationId: string;
  token: string;
}

/** Webhook that a repository calls. */
export interface Webhook {
  organizationId: string;
  /** Folder of the repository. */
  repository: string;
  secret: string;
}

const dataDir = mkdtempSync(path.join(tmpdir(), 'bench-program-'));
// Programs under other accounts must reach their folders.
chmodSync(dataDir, 0o755);
const running = await start(
  readSettings({
    QUARTERDECK_DATA_DIR: dataDir,
    QUARTERDECK_PORT: '0',
    QUARTERDECK_PROXY: 'builtin',
    QUARTERDECK_PROXY_PORT: '0',
    QUARTERDECK_OPERATIONS_PORT: '0',
    QUARTERDECK_TERRAFORM_STATE_PORT: '0',
    QUARTERDECK_RATE_LIMIT_PER_HOUR: '0',
    QUARTERDECK_STREAMS_PER_TOKEN: '1000',
    QUARTERDECK_LOCAL_GIT_ROOTS: process.env['BENCH_REPOSITORIES'],
    QUARTERDECK_RUNTIME: process.env['BENCH_RUNTIME'],
  }),
  pino({ level: 'silent' }),
);
const { platform, nodeId } = running.base;
const { db } = platform;
const url = running.url!;

offer(
  {
    first: (): Tenant => ({ url, organizationId: running.first!.organizationId, token: running.first!.token! }),
    /** Makes another organization with a cluster on this machine. */
    newTenant: (): Promise<Tenant> =>
      inTransaction(systemContext(platform), async (context) => {
        const userId = await makeAdministrator(context);
        const organizationId = await makeOrganization(context, 'Another organization', userId);
        const { runtime } = running;
        const cluster = { organizationId, name: 'local', description: '', runtime: runtime as 'fake', nodeId };
        await insertCluster(context, { ...cluster, deploy: true });
        return { url, organizationId, token: await makeAdministratorToken(context, organizationId, userId, 'Bench') };
      }),
    /** Waits until the clusters are deployed. */
    ready: async () => {
      for (;;) {
        const { rows } = await sql<{ state: string }>`select state from cluster`.execute(db);
        if (rows.every(({ state }) => state === 'DEPLOYED')) return;
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    },
    /** Makes the webhook of a repository as a provider would get it. Answers its path. */
    newWebhook: async ({ organizationId, repository, secret }: Webhook): Promise<string> => {
      const id = newId();
      const sealed = await platform.vault.seal(db, organizationId, gitWebhookSecretPlace(id), secret);
      const webhook = { id, organization_id: organizationId, repository: repository.toLowerCase(), secret: sealed };
      await db.insertInto('git_webhook').values(webhook).execute();
      return gitWebhookPath(id);
    },
    /** Waits until no push and no deployment is under way. */
    settled: async () => {
      for (;;) {
        const { rows } = await sql<{ is: boolean }>`
          select exists (select from git_push where status <> 'ENDED') or exists (select from deployment where status <> 'ENDED') as is`.execute(
          db,
        );
        if (!rows[0]!.is) return;
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    },
    rss: () => process.memoryUsage.rss(),
  },
  async () => {
    await removeEverything(await running.runtimes.onMachine(running.runtime as 'fake'));
    await running.stop();
    await running.runtimes.endProxy();
    rmSync(dataDir, { recursive: true, force: true });
  },
);
