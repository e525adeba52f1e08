export { folderRoutes } from '#services/capabilities/service/folder/routes.ts';
