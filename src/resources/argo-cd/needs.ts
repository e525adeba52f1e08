import type { Context } from '#platform/context.ts';
import type { Scope } from '#platform/database/index.ts';

/** What Argo CD's routes are given by app/: the services that its apps are. */
export interface ArgoCdNeeds {
  /** Removes the services that were read from an Argo CD, of all its destinations or of one, in the transaction of the call. */
  forgetApps(context: Context, scope: Scope, argoCdId: string, destination?: string): Promise<void>;
}
