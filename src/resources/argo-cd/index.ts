export { argoCdRoutes } from '#resources/argo-cd/routes.ts';
export { ARGO_CD } from '#resources/argo-cd/channels.ts';
export { findArgoCd } from '#resources/argo-cd/access.ts';
export { ArgoCdError, type ArgoCdApplication, type ArgoCdCluster } from '#resources/argo-cd/api.ts';
export { destinationsAmong } from '#resources/argo-cd/destination.ts';
export type { ArgoCdSource } from '#kernel/parsing/argo-cd.ts';
