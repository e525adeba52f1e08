import { withBase } from '#cli/base.ts';
import { chooseOrganization } from '#cli/organization.ts';
import { print } from '#cli/print.ts';
import { isId } from '#kernel/ids.ts';
import { verifyAudit, type Finding, type Verified } from '#platform/events/chain/index.ts';
import type { Settings } from '#platform/settings/index.ts';

export interface VerifyOptions {
  organization?: string;
  json?: true;
}

/** Compares the audit events with their signatures and seals. Throws when one is not as it was written. */
export async function verifyAuditCommand(settings: Settings, options: VerifyOptions): Promise<void> {
  await withBase(settings, async (base) => {
    const { organization } = options;
    // An organization that was deleted still has its events.
    const wanted = organization && !isId(organization) ? await chooseOrganization(base, organization) : organization;
    let found = 0;
    for await (const verified of verifyAudit(base.platform, wanted)) {
      found += verified.found;
      print(options.json ? JSON.stringify(verified) : describe(verified));
    }
    if (found > 0)
      throw new Error(
        `${found === 1 ? '1 thing is not as it was' : `${found} things are not as they were`} written: see above.`,
      );
  });
}

function describe({ organizationId, events, waiting, before, findings, found }: Verified): string {
  const result = `${events} events compared, ${found === 0 ? 'all as they were written' : `${found} findings`}`;
  const notes = [
    ...(waiting > 0 ? [`${waiting} of a moment ago wait for their seal`] : []),
    ...(before > 0 ? [`${before} are from before there were chains, which nothing protects`] : []),
  ];
  const head = `organization ${organizationId}: ${result}${notes.length > 0 ? ` (${notes.join('; ')})` : ''}`;
  const more = found > findings.length ? [`  … and ${found - findings.length} more`] : [];
  return [head, ...findings.map(lineOf), ...more].join('\n');
}

const lineOf = ({ kind, sequence, eventId, message }: Finding): string =>
  [
    `  ${kind}`,
    sequence === undefined ? '' : `  seal ${sequence}`,
    eventId ? `  event ${eventId}` : '',
    `  ${message}`,
  ].join('');
