import { AppError, conflict } from '#kernel/errors.ts';
import type { Action } from '#platform/access/actions.ts';
import { findMakerPrincipal, type Maker } from '#platform/access/makers.ts';
import { permits, type Actor, type Location } from '#platform/access/principal.ts';
import type { Context } from '#platform/context.ts';
import { environmentRule } from '#resources/deployment-rule/index.ts';
import type { EnvironmentTarget } from '#resources/environment/index.ts';
import type { PreviewRow } from '#services/previews/queries.ts';

/** Context that acts with the rights of the person who answers for a preview. */
export interface MakerContext {
  context: Context;
  require(action: Action, at: Location): void;
}

type MadeFor = Pick<
  PreviewRow,
  'repository' | 'number' | 'is_asked' | 'is_fork' | 'approved_commit' | 'approved_by' | 'approved_with'
>;

/**
 * Returns the context in which a preview is made or brought up to date. Throws 409 if the environment makes no previews any more, or its rule
 * was saved by somebody without rights (docs/decisions/0103-a-preview-has-the-rights-of-its-rule.md). The preview of a fork has the rights
 * of whoever approved it instead (docs/decisions/0113-a-fork-runs-what-was-approved-and-sees-no-secret.md).
 */
export async function makerContext(
  context: Context,
  source: EnvironmentTarget,
  preview: MadeFor,
): Promise<MakerContext> {
  const rule = await environmentRule(context, source);
  if (!rule.auto_preview && !(rule.on_demand_preview && preview.is_asked))
    throw conflict(`The deployment rule of ${source.name} makes no previews of this pull request any more.`);
  const lost = preview.is_fork ? approverLost(preview) : ruleLost(source);
  const maker: Maker = preview.is_fork
    ? { userId: preview.approved_by, tokenId: preview.approved_with }
    : { userId: rule.set_by, tokenId: rule.set_with };
  const principal = maker.userId === null ? undefined : await findMakerPrincipal(context, source, maker);
  if (!principal) throw lost('work here');
  const actor: Actor = {
    userId: maker.userId,
    ...(maker.tokenId ? { tokenId: maker.tokenId } : {}),
    name: `pull request ${preview.number} of ${preview.repository}`,
    origin: 'GIT',
    userAgent: null,
  };
  return {
    context: { ...context, actor },
    require: (action, at) => {
      if (!permits(principal, action, at)) throw lost(`do ${action} there`);
    },
  };
}

type Lost = (what: string) => AppError;

const ruleLost =
  (source: EnvironmentTarget): Lost =>
  (what) =>
    new AppError(
      'forbidden',
      `Whoever saved the deployment rule of ${source.name} last may not ${what} any more: somebody who may must save it again.`,
    );

const approverLost =
  ({ approved_commit: commit }: MadeFor): Lost =>
  (what) =>
    new AppError(
      'forbidden',
      `Whoever approved commit ${commit} may not ${what} any more: somebody who may must approve it again.`,
    );
