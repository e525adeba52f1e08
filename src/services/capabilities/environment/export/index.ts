export { terraformExportRoutes } from '#services/capabilities/environment/export/routes.ts';
