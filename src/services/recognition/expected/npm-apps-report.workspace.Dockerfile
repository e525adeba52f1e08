# Recognised by package.json, package-lock.json of the workspace of apps/report: Node.js 24 with npm. To change it, commit it as apps/report/Dockerfile, with root_path / and dockerfile_path apps/report/Dockerfile.
FROM node:24 AS build
WORKDIR /app
COPY . ./
RUN --mount=type=cache,target=/root/.npm npm ci --no-audit --no-fund
RUN cd packages/greeting && npm run build
RUN npm prune --omit=dev --no-audit --no-fund

FROM node:24-slim
WORKDIR /app
ENV NODE_ENV=production
COPY --from=build --chown=65532:65532 /app ./
ENV PATH=/app/apps/report/node_modules/.bin:/app/node_modules/.bin:$PATH
WORKDIR /app/apps/report
USER 65532:65532
CMD ["sh","-c","exec node report.js"]
