/** Channel that asks for an Argo CD to be read now. Only a nudge: the worker that reads them also polls. */
export const ARGO_CD = 'argo_cd';
