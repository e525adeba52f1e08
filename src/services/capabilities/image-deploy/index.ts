export { imageDeployRoutes } from '#services/capabilities/image-deploy/routes.ts';
