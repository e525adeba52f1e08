import { findMakerPrincipal } from '#platform/access/makers.ts';
import { permits, type Principal } from '#platform/access/principal.ts';
import type { Context } from '#platform/context.ts';
import type { EnvironmentTarget } from '#resources/environment/index.ts';
import type { ServiceRow } from '#services/service/queries.ts';

/**
 * Rights of the last editors of services in an environment: what deploys a service without a request of a person has these
 * (docs/decisions/0096-a-push-deploys-with-the-rights-of-the-last-edit.md).
 */
export class LastEditors {
  readonly #context: Context;
  readonly #environment: EnvironmentTarget;
  readonly #found = new Map<string, Promise<Principal | undefined>>();

  constructor(context: Context, environment: EnvironmentTarget) {
    this.#context = context;
    this.#environment = environment;
  }

  /** Returns why the last editor of a service may not deploy it now, with the token of that edit; undefined if they may. */
  async refusal({
    name,
    last_updated_by: userId,
    last_updated_with: tokenId,
  }: ServiceRow): Promise<string | undefined> {
    const key = `${userId} ${tokenId}`;
    const found = this.#found.get(key) ?? findMakerPrincipal(this.#context, this.#environment, { userId, tokenId });
    this.#found.set(key, found);
    const maker = await found;
    return maker !== undefined && permits(maker, 'service.deploy', this.#environment)
      ? undefined
      : `Whoever saved ${name} last may not deploy it any more: somebody who may must save it again.`;
  }
}
