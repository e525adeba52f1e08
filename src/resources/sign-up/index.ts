export { signUpRoutes } from '#resources/sign-up/routes.ts';
