import type { TObject } from 'typebox';
import type { Action } from '#platform/access/actions.ts';
import type { Context } from '#platform/context.ts';
import type { Target } from '#platform/http/route.ts';
import type { EnvironmentTarget } from '#resources/environment/index.ts';
import type { Holder, ServiceKind } from '#services/holder.ts';
import type { ServiceRow } from '#services/service/queries.ts';
import { serviceTarget, type ServiceTarget } from '#services/service/target.ts';

/** What every body that creates or edits a service may say, besides the kind's own part. */
export interface CommonInput {
  name: string;
  description?: string | null;
  icon_uri?: string;
}

/**
 * A kind of service: a descriptor and the few functions that are its own. What kinds have in common is written once, as
 * capabilities, which mount.ts joins with the kinds.
 */
export interface Kind<Spec = any, Input extends CommonInput = any> {
  kind: ServiceKind;
  /** First segment of its paths. */
  path: string;
  /** How its tags begin (`Application`), and the tag of its lists (`Applications`). */
  tag: string;
  listTag: string;
  /** Stage that a new service of it joins (engine.md, *Snapshot, resolution, plan*). */
  defaultStage: string;
  /** Permission that deleting it takes (decisions.md 23). */
  deleteAction: Action;
  schemas: { create: TObject; edit: TObject; answer: TObject };
  /**
   * The configuration to store, made of a body and, when a service is edited, of what it was: what the body leaves out stays.
   * Throws 400 that names the field.
   */
  toSpec(context: Context, place: SpecPlace, input: Input, present: Spec | null): Promise<Spec>;
  /** The kind's own part of an answer. */
  toView(context: Context, row: ServiceRow, spec: Spec): Record<string, unknown>;
}

/** Where a configuration is for: ids that it names must be of the same organization. */
export interface SpecPlace {
  organizationId: string;
  environmentId: string;
  environment?: EnvironmentTarget;
}

export const paramOf = (kind: Kind): string => `${kind.path}Id`;

/** The holder that capabilities stand on. */
export const holderOf = (kind: Kind): Holder & { target: Target<ServiceTarget> } => ({
  path: kind.path,
  param: paramOf(kind),
  tag: kind.tag,
  name: kind.tag,
  scope: kind.kind as Holder['scope'],
  target: serviceTarget(paramOf(kind), kind.tag, kind.kind),
});
