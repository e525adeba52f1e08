import { serviceTarget } from '#services/service/target.ts';

/** Service of any kind that the query of a socket names. */
export const serviceOfQuery = serviceTarget('service', 'Service');
