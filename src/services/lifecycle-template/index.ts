export { lifecycleTemplateRoutes } from '#services/lifecycle-template/routes.ts';
