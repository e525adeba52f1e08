export { memberRoutes } from '#resources/member/routes.ts';
