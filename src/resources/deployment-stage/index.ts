export { deploymentStageRoutes } from '#resources/deployment-stage/routes.ts';
export { findStageOfService, listStages } from '#resources/deployment-stage/queries.ts';
export { stageView } from '#resources/deployment-stage/service.ts';
export { Stage } from '#resources/deployment-stage/schema.ts';
