/** Causes of failures: each has a code, a sentence, what usually fixes it, and the lines that show it. */
export { diagnose, KNOWN_CAUSES, SEARCHED_LINES } from '#deployments/causes/diagnose.ts';
