// Loaded before a tool that reads TypeScript through the compiler's JavaScript interface, which version 7 does not have: the tool is
// given version 6 under the name `typescript`.
import { registerHooks } from 'node:module';

registerHooks({
  resolve: (specifier, context, next) =>
    next(specifier.replace(/^typescript(?=\/|$)/, 'dependency-cruiser-typescript'), context),
});
