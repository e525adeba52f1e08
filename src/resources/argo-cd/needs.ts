import type { Context } from '#platform/context.ts';
import type { Scope } from '#platform/database/index.ts';

/** Parts of the program that app/ gives to the routes of Argo CD: the services that its apps are. */
export interface ArgoCdNeeds {
  /** Removes the services of an Argo CD, of all its destinations or of one, in the transaction of the call. */
  forgetApps(context: Context, scope: Scope, argoCdId: string, destination?: string): Promise<void>;
}
