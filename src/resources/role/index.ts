export { roleRoutes } from '#resources/role/routes.ts';
export { requireRole } from '#resources/role/service.ts';
export { findBuiltInRole } from '#resources/role/queries.ts';
export { RoleId } from '#resources/role/schema.ts';
