import { createHash } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import type { ChartRequest, Sources } from '#deployments/index.ts';
import type { Platform } from '#platform/context.ts';
import { downloadChart } from '#resources/helm-repository/index.ts';

/** Charts of the organizations' Helm repositories, as the engine uses them. */
export type Charts = Pick<Sources, 'resolveChart' | 'fetchChart'>;

/** Creates the reader of charts, which uses the credentials of their Helm repositories and the settings' address policy. */
export function createCharts(platform: Pick<Platform, 'db' | 'vault' | 'settings' | 'clock'>): Charts {
  const download = ({ organizationId, repositoryId, name, version, signal }: ChartRequest) =>
    downloadChart(
      { ...platform, signal },
      organizationId,
      { repositoryId, chartName: name, chartVersion: version },
      'source.helm_repository',
    );
  return {
    resolveChart: async (request) => digestOf(await download(request)),
    fetchChart: async ({ digest, file, ...request }) => {
      const archive = await download(request);
      if (digest !== null && digestOf(archive) !== digest)
        throw new Error(
          `The Helm repository has another archive of ${request.name} ${request.version} than the release that is deployed again (sha256:${digest}): deploy a version of the chart that its repository has.`,
        );
      await writeFile(file, archive, { mode: 0o600 });
    },
  };
}

const digestOf = (archive: Buffer): string => createHash('sha256').update(archive).digest('hex');
