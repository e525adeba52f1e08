export { billingRoutes } from '#resources/billing/routes.ts';
