// docs/chart-values.md and the rights of the chart (deploy/chart).
import { writeFileSync } from 'node:fs';
import { chartRights, chartValuesPage } from './chart-files.ts';

writeFileSync('deploy/chart/rights.yaml', chartRights());
writeFileSync('docs/chart-values.md', await chartValuesPage());
