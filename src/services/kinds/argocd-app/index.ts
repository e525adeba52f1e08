export { forgetApps } from '#services/kinds/argocd-app/forget.ts';
export { argoCdApp } from '#services/kinds/argocd-app/routes.ts';
export { ARGO_CD_REPORT } from '#services/kinds/argocd-app/claims.ts';
export { createArgoCdLoop } from '#services/kinds/argocd-app/work.ts';
