export { imageDeployRoutes } from '#services/capabilities/environment/image-deploy/routes.ts';
