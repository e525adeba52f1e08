export { terraformExportRoutes } from '#services/capabilities/terraform-export/routes.ts';
