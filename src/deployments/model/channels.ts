/** Channels on which the engine is woken (platform/database/notify.ts). A message is a nudge: whoever listens also polls. */
export const DEPLOYMENTS = 'quarterdeck_deployments';
/** The payload is the deployment's id. */
export const CANCELLATIONS = 'quarterdeck_cancellations';
/** A deployment has moved; the payload is its id. */
export const PROGRESS = 'quarterdeck_progress';
