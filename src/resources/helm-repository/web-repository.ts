import { createHash } from 'node:crypto';
import { badGateway, badRequest } from '#kernel/errors.ts';
import { ParsingError } from '#kernel/parsing/index.ts';
import { OutgoingError, requestFollowing, type OutgoingAnswer } from '#platform/http-client/index.ts';
import type { OpenRepository } from '#resources/helm-repository/access.ts';
import { readChartIndex, type ChartIndex, type ChartInIndex } from '#resources/helm-repository/chart-index.ts';

const INDEX_BYTES = 16 * 1024 * 1024;
const TIMEOUT_MS = 30_000;

/** Reads the index of a repository on the web; 400 if it refuses access or has no index, 502 if it does not answer. */
export async function readIndex(repository: OpenRepository): Promise<ChartIndex> {
  const { url } = repository.access;
  const answer = await fetchFrom(repository, indexUrl(url), INDEX_BYTES);
  const { host } = new URL(url);
  if (answer.status === 401 || answer.status === 403)
    throw badRequest(`The Helm repository ${host} does not let us read its index: give it other credentials.`);
  if (answer.status === 404) throw badRequest(`There is no Helm repository at ${url}: it has no index.yaml.`);
  if (answer.status !== 200) throw badGateway(`The Helm repository ${host} answered ${answer.status}.`);
  if (answer.truncated) throw badRequest(`The index of ${host} is larger than ${INDEX_BYTES / 1024 / 1024} MiB.`);
  return readChartIndex(repository.organizationId, indexUrl(url), answer.body).catch((error: unknown) => {
    if (!(error instanceof ParsingError) || error.kind === 'busy') throw error;
    throw badRequest(`${url}/index.yaml is not the index of a Helm repository: ${error.problem}.`);
  });
}

/** Downloads the archive of a chart that an index names, and checks the digest that the index gives. */
export async function fetchArchive(repository: OpenRepository, chart: ChartInIndex, maxBytes: number): Promise<Buffer> {
  const { url } = repository.access;
  const index = indexUrl(url);
  if (chart.url === null || !URL.canParse(chart.url, index))
    throw badRequest(`The index of ${url} does not say where the archive of version ${chart.version} is.`);
  const at = new URL(chart.url, index);
  const answer = await fetchFrom(repository, at.href, maxBytes);
  if (answer.status >= 500)
    throw badGateway(`The archive of the chart is not available: ${at.host} answered ${answer.status}.`);
  if (answer.status !== 200)
    throw badRequest(`The archive of the chart is not at ${at.href}: the answer is ${answer.status}.`);
  if (answer.truncated) throw badRequest(`The archive of the chart is larger than ${maxBytes / 1024 / 1024} MiB.`);
  const digest = createHash('sha256').update(answer.body).digest('hex');
  if (chart.digest !== null && chart.digest.replace(/^sha256:/, '').toLowerCase() !== digest)
    throw badGateway(`The archive of the chart at ${at.href} is not the one that the index names.`);
  return answer.body;
}

function indexUrl(url: string): string {
  const at = new URL(url);
  at.pathname = `${at.pathname.replace(/\/+$/, '')}/index.yaml`;
  return at.href;
}

/** Fetches from a repository. Credentials go to its own origin only, as with helm: archives often lie elsewhere. */
async function fetchFrom(
  { http, access, signal }: OpenRepository,
  url: string,
  maxBytes: number,
): Promise<OutgoingAnswer> {
  const { credentials, skipTlsVerification = false } = access;
  const { host, origin } = new URL(url);
  const basic =
    credentials && origin === new URL(access.url).origin
      ? `Basic ${Buffer.from(`${credentials.username}:${credentials.password}`).toString('base64')}`
      : undefined;
  try {
    return await requestFollowing(http, url, { maxBytes, timeoutMs: TIMEOUT_MS, skipTlsVerification, signal }, basic);
  } catch (error) {
    if (!(error instanceof OutgoingError)) throw error;
    const message = `The Helm repository ${host} cannot be asked: ${error.message}`;
    throw ['forbidden_address', 'invalid_url'].includes(error.failure)
      ? badRequest(message)
      : badGateway(message, error);
  }
}
