export { projectRoutes } from '#resources/project/routes.ts';
export { projectTarget, type ProjectTarget } from '#resources/project/target.ts';
export { createProject } from '#resources/project/service.ts';
export { deleteProjectRow, markProjectDeleting, touchProject } from '#resources/project/queries.ts';
