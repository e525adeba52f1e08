// docs/settings.md, made from the settings themselves (src/platform/settings/schema.ts).
import { writeFileSync } from 'node:fs';
import { settingsPage } from './settings-page.ts';

writeFileSync('docs/settings.md', await settingsPage());
