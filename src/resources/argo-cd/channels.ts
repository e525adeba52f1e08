/** Says that an Argo CD is to be read now. Only a nudge: whoever reads them looks by itself as well. */
export const ARGO_CD = 'argo_cd';
