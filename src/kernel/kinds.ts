import { KIND_FACTS, type KindFacts } from '#kernel/service-kinds.ts';

type Facts = typeof KIND_FACTS;

/** Kind of a service (docs/kinds.md). */
export type ServiceKind = keyof Facts;

/** Kinds that have a fact. */
export type KindWith<Fact extends keyof KindFacts> = {
  [Kind in ServiceKind]: Facts[Kind] extends Record<Fact, unknown> ? Kind : never;
}[ServiceKind];

/** Names of all kinds. */
export const SERVICE_KINDS = Object.keys(KIND_FACTS) as ServiceKind[];

/** Returns the facts about a kind; those of an unknown one are empty. */
export const factsOf = (kind: string): Partial<KindFacts> => (KIND_FACTS as Record<string, KindFacts>)[kind] ?? {};

/** Returns the names of the kinds that have a fact. */
export const kindsWith = <Fact extends keyof KindFacts>(fact: Fact): KindWith<Fact>[] =>
  SERVICE_KINDS.filter((kind) => factsOf(kind)[fact] !== undefined) as KindWith<Fact>[];

/** Returns whether a kind has a fact. */
export const hasFact = <Fact extends keyof KindFacts>(kind: string | null, fact: Fact): kind is KindWith<Fact> =>
  kind !== null && factsOf(kind)[fact] !== undefined;

/** Types of what services of these kinds are: their kinds, but CRON and LIFECYCLE for scheduled ones. */
export const serviceTypes = (kinds: readonly ServiceKind[]): string[] =>
  kinds.flatMap((kind): string[] => (hasFact(kind, 'scheduled') ? ['CRON', 'LIFECYCLE'] : [kind]));
