import { makeFolder, orderOf, startNamespaces } from '#test/harness/kubernetes/namespaces.ts';

// Starts the namespaces of a cluster with one component, prints where they are, and stays until it is killed.

const folder = await makeFolder();
const { addresses } = await startNamespaces(folder);
await orderOf(folder, {
  start: { name: 'waits', program: process.execPath, args: ['-e', 'setInterval(() => {}, 1e6)', folder] },
});
console.log(JSON.stringify({ folder, link: addresses.link }));
