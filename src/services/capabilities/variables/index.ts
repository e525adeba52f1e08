export { mainVariableRoutes } from '#services/capabilities/variables/main-routes.ts';
export { secretRoutes, variableRoutes } from '#services/capabilities/variables/routes.ts';
export { freezeVariables, listLostSecrets, thawVariables } from '#services/capabilities/variables/snapshot.ts';
export { recordOutputs, withOutputs, type Output, type OutputPlace } from '#services/capabilities/variables/outputs.ts';
export { effectiveVariables } from '#services/capabilities/variables/effective.ts';
export { removeUnusedSecretVersions } from '#services/capabilities/variables/housekeeping.ts';
export { databasePasswordPlace, type StoredDatabaseAccess } from '#services/capabilities/variables/built-ins.ts';
export { copyVariables, type VariableCopy } from '#services/capabilities/variables/copy.ts';
