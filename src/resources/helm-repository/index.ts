export { downloadChart, readChartFile } from '#resources/helm-repository/charts.ts';
export { helmRepositoryRoutes } from '#resources/helm-repository/routes.ts';
export { findHelmRepository } from '#resources/helm-repository/service.ts';
