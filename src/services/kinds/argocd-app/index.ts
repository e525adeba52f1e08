export { forgetApps } from '#services/kinds/argocd-app/forget.ts';
export { ArgoCdWatcher } from '#services/kinds/argocd-app/watcher.ts';
