import type { StartAgain } from '#deployments/index.ts';
import { submit } from '#services/capabilities/service/actions/request.ts';
import { requestLastReleases } from '#services/capabilities/service/rollback/service.ts';

/** Automatic requests for what should run and does not. */
export const START_AGAIN: StartAgain = {
  restart: (context, place, serviceIds) => submit(context, place, 'RESTART', serviceIds, { automatic: true }),
  rollBack: requestLastReleases,
};
