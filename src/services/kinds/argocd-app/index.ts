export { forgetApps } from '#services/kinds/argocd-app/forget.ts';
export { argoCdApp } from '#services/kinds/argocd-app/routes.ts';
export { ARGO_CD_REPORT } from '#services/kinds/argocd-app/claims.ts';
export { ArgoCdWatcher } from '#services/kinds/argocd-app/watcher.ts';
