/** Tells whether a ref is neither branch nor tag, as `refs/pull/7/head`. Its commits may be those of a stranger. */
export const isForeignRef = (name: string): boolean => /^refs\/(?!heads\/|tags\/)/.test(name);
