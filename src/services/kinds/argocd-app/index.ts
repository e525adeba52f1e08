export { forgetApps } from '#services/kinds/argocd-app/forget.ts';
