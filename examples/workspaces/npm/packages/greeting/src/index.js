export const greet = (who) => `Hello from ${who}`;
