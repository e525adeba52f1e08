import { ok, type Actor } from '#test/harness/app.ts';

export interface Plan {
  action: string;
  stages: {
    id: string;
    name: string;
    services: { id: string; steps: string[]; reason: string; changes: any; rollout: string }[];
  }[];
}

export const planOf = async (admin: Actor, url: string, query = ''): Promise<Plan> =>
  ok(await admin.get(`${url}/deploymentPlan${query}`), 200);
