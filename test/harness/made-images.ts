/** Setting by which builds may start from the images of `docker-images.ts`, which are in no registry. */
export const MADE_IMAGES = { QUARTERDECK_LOCAL_BASE_IMAGES: 'busybox,node,quarterdeck-test-terraform' };
