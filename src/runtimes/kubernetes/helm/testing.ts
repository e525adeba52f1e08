import { mkdtemp, mkdir, rm, writeFile } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import path from 'node:path';
import type { ChartSpec, WorkloadIdentity } from '#runtimes/runtime.ts';
import { findProgram } from '#runtimes/tools/find-program.ts';
import { BUSYBOX_IMAGE } from '#test/harness/docker-images.ts';

/** Returns the program helm that `.ci/kubernetes` builds, or the one of the machine. */
export function findTestHelm(): string {
  const cache = process.env['XDG_CACHE_HOME'] ?? path.join(homedir(), '.cache');
  const built = path.join(cache, 'quarterdeck-ci/kubernetes-1.34.1');
  const found = findProgram('helm', `${built}${path.delimiter}${process.env['PATH'] ?? ''}`);
  if (!found) throw new Error('These tests need helm: `.ci/kubernetes` builds it.');
  return found;
}

/** Templates of a chart that serves HTTP with busybox. */
export const WEB_CHART: Record<string, string> = {
  'Chart.yaml': 'apiVersion: v2\nname: web\nversion: 1.0.0\n',
  'values.yaml':
    'text: plain\nreplicas: 1\nisBroken: false\ndelay: 0\nlookup: null\nhook: null\nhookPolicy: before-hook-creation\nservers: [{port: 1}, {port: 2}]\n',
  'templates/web.yaml': `
apiVersion: apps/v1
kind: Deployment
metadata: {name: "{{ .Release.Name }}-web"}
spec:
  replicas: {{ .Values.replicas }}
  selector: {matchLabels: {app: "{{ .Release.Name }}-web"}}
  template:
    metadata: {labels: {app: "{{ .Release.Name }}-web"}}
    spec:
      terminationGracePeriodSeconds: 1
      hostPID: {{ .Values.ofHost | default false }}
      containers:
        - name: web
          image: ${BUSYBOX_IMAGE}
          imagePullPolicy: Never
          command: [sh, -c]
          args:
            - |
              trap "exit 0" TERM
              {{ if .Values.isBroken }}echo "no configuration"; exit 3{{ end }}
              echo "serving {{ .Values.text }}"
              mkdir -p /www; cp /config/text /www/index.html; httpd -f -p 8080 -h /www & wait
          readinessProbe: {httpGet: {port: 8080, path: /}, periodSeconds: 1, initialDelaySeconds: {{ .Values.delay }}}
          volumeMounts: [{name: config, mountPath: /config}]
      volumes: [{name: config, configMap: {name: "{{ .Release.Name }}-config"}}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ .Release.Name }}-config"}
data:
  text: {{ .Values.text | quote }}
  servers: {{ .Values.servers | toJson | quote }}
---
apiVersion: v1
kind: Service
metadata: {name: "{{ .Release.Name }}-web", labels: {part: web}}
spec:
  selector: {app: "{{ .Release.Name }}-web"}
  ports: [{name: http, port: 80, targetPort: 8080}]
{{- with .Values.lookup }}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ $.Release.Name }}-lookup"}
data: {found: {{ lookup .version .kind .namespace .name | toJson | quote }}}
{{- end }}
{{- with .Values.foreign }}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: intruder, namespace: {{ . }}}
{{- end }}
{{- if .Values.role }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: "{{ $.Release.Name }}-role"}
rules: []
{{- end }}
{{- if .Values.volume }}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: "{{ $.Release.Name }}-store"}
spec:
  replicas: 0
  serviceName: store
  selector: {matchLabels: {app: store}}
  template:
    metadata: {labels: {app: store}}
    spec: {containers: [{name: store, image: ${BUSYBOX_IMAGE}}]}
  volumeClaimTemplates:
    - metadata: {name: data}
      spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
{{- end }}
{{- with .Values.hook }}
---
apiVersion: batch/v1
kind: Job
metadata:
  name: "{{ $.Release.Name }}-hook"
  annotations: {helm.sh/hook: "pre-install,pre-upgrade", helm.sh/hook-delete-policy: "{{ $.Values.hookPolicy }}"}
spec:
  backoffLimit: 0
  template:
    spec:
      restartPolicy: Never
      terminationGracePeriodSeconds: 1
      containers:
        - {name: hook, image: "${BUSYBOX_IMAGE}", imagePullPolicy: Never, command: [sh, -c, {{ . | quote }}]}
{{- end }}
`,
};

/** Folders of charts; `remove` deletes them. */
export class ChartFolders {
  #root: Promise<string> | undefined;
  #count = 0;

  /** Writes a chart; answers its folder. */
  async make(files: Record<string, string>): Promise<string> {
    this.#root ??= mkdtemp(path.join(tmpdir(), 'qd-charts-'));
    const folder = path.join(await this.#root, String(++this.#count));
    for (const [name, content] of Object.entries(files)) {
      const file = path.join(folder, name);
      await mkdir(path.dirname(file), { recursive: true });
      await writeFile(file, content);
    }
    return folder;
  }

  async remove(): Promise<void> {
    if (this.#root) await rm(await this.#root, { recursive: true, force: true });
  }
}

/** Returns a chart of a folder, with values as a file. */
export const newChart = (identity: WorkloadIdentity, chart: string, changes: Partial<ChartSpec> = {}): ChartSpec => ({
  type: 'helm',
  identity,
  displayName: 'web',
  hostname: `helm-z${identity.serviceId.slice(0, 8)}`,
  title: 'web 1.0.0',
  chart,
  folder: tmpdir(),
  values: [],
  arguments: [],
  allowClusterWide: false,
  timeoutSeconds: 60,
  ports: [],
  routes: [],
  secrets: [],
  warnings: [],
  ...changes,
});
