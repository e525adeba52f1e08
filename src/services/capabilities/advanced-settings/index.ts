export { advancedSettingsRoutes, networkRoutes } from '#services/capabilities/advanced-settings/routes.ts';
export { advancedSettingsOf } from '#services/capabilities/advanced-settings/settings.ts';
