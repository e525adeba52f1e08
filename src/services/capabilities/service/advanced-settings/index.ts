export { advancedSettingsRoutes, networkRoutes } from '#services/capabilities/service/advanced-settings/routes.ts';
export { advancedSettingsOf } from '#services/capabilities/service/advanced-settings/settings.ts';
