import { badRequest } from '#kernel/errors.ts';
import type { ImageReader } from '#services/parts/images.ts';

/** For what only needs the routes, such as the document, and until an organization has registries. */
export const noImages: ImageReader = {
  resolveImage: () => Promise.reject(badRequest('There are no container registries here.')),
};
