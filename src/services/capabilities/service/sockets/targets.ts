import { environmentTarget } from '#resources/environment/index.ts';
import { serviceTarget } from '#services/service/target.ts';

/** Environment that the query of a socket names. */
export const environmentOfQuery = { ...environmentTarget, param: 'environment' };

/** Service of any kind that the query of a socket names. */
export const serviceOfQuery = serviceTarget('service', 'Service');
