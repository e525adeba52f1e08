export { accountRoutes } from '#resources/account/routes.ts';
