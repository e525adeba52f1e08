export { imageDeployRoutes } from '#services/capabilities/service/image-deploy/routes.ts';
