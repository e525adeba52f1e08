// A process that delivers webhooks until it is killed or asked to end. Its database comes as JSON on the standard input.
import { randomBytes } from 'node:crypto';
import { text } from 'node:stream/consumers';
import { pino } from 'pino';
import { systemClock } from '#kernel/clock.ts';
import { newId } from '#kernel/ids.ts';
import { createWebhookDelivery } from '#delivery/webhooks/index.ts';
import { openDatabase } from '#platform/database/index.ts';
import { createHttpClient } from '#platform/http-client/index.ts';
import { readSettings } from '#platform/settings/index.ts';
import { createVault } from '#platform/vault/index.ts';

const { config, times } = JSON.parse(await text(process.stdin));
const { db, close } = openDatabase({ config: { ...config, max: 2 } });
const delivery = createWebhookDelivery({
  platform: {
    db,
    vault: createVault([randomBytes(32)]),
    settings: readSettings({}),
    clock: systemClock,
    log: pino({ level: 'silent' }),
    notify: () => undefined,
  },
  nodeId: newId(),
  http: createHttpClient({ allowedPrivateAddresses: ['127.0.0.0/8'] }),
  times,
});
delivery.start();
process.on('SIGTERM', () => void delivery.stop().then(close));
