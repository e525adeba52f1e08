import { X509Certificate } from 'node:crypto';
import { AppError } from '#kernel/errors.ts';
import type { Context } from '#platform/context.ts';
import type { Scope } from '#platform/database/index.ts';
import { readAccess } from '#resources/cluster/kubeconfig.ts';
import { openUnreadKubeconfig, saveKubeconfigEnd } from '#resources/cluster/secrets.ts';
import type { ClusterAccess } from '#runtimes/runtime.ts';

/** Seconds of the year 10000: a later end is no time that a database or a person understands. */
const LATEST_SECONDS = 253_402_300_800;

/**
 * Stores until when the credentials in the kubeconfig of a cluster are valid. What is stored of the present kubeconfig is not read again:
 * reading takes a thread.
 */
export async function noteKubeconfigEnd(
  context: Pick<Context, 'db' | 'vault'>,
  scope: Scope,
  clusterId: string,
): Promise<void> {
  const unread = await openUnreadKubeconfig(context, scope, clusterId);
  if (!unread) return;
  const endsAt = await endOf(scope.organizationId, unread.text);
  await saveKubeconfigEnd(context.db, scope, clusterId, unread.value, endsAt);
}

/** Returns the end of the credentials of a kubeconfig; null where none is known, as of one that cannot be used at all. */
async function endOf(organizationId: string, kubeconfig: string): Promise<Date | null> {
  try {
    return endOfAccess(await readAccess(organizationId, kubeconfig));
  } catch (error) {
    if (error instanceof AppError && error.code === 'bad_request') return null;
    throw error;
  }
}

/** Returns the earlier end of a client certificate and of a token that is a JSON Web Token; null if neither tells one. */
export function endOfAccess({ certificate, token }: Pick<ClusterAccess, 'certificate' | 'token'>): Date | null {
  const ends = [
    certificate === null ? null : endOfCertificate(certificate.certificate),
    token === null ? null : endOfToken(token),
  ].filter((end) => end !== null);
  return ends.length === 0 ? null : new Date(Math.min(...ends.map(Number)));
}

function endOfCertificate(pem: string): Date | null {
  try {
    return new X509Certificate(pem).validToDate;
  } catch {
    // The API server says that it is no certificate as soon as the cluster is reached.
    return null;
  }
}

function endOfToken(token: string): Date | null {
  const [, payload, signature] = token.split('.');
  if (payload === undefined || signature === undefined) return null;
  try {
    const { exp } = JSON.parse(Buffer.from(payload, 'base64url').toString()) as { exp?: unknown };
    return typeof exp === 'number' && exp > 0 && exp < LATEST_SECONDS ? new Date(exp * 1000) : null;
  } catch {
    // Tokens need not be JSON Web Tokens: others have points, too.
    return null;
  }
}
