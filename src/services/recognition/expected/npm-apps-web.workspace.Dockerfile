# Recognised by package.json, package-lock.json of the workspace of apps/web: Node.js 24 with npm. To change it, commit it as apps/web/Dockerfile, with root_path / and dockerfile_path apps/web/Dockerfile.
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
ENV PATH=/app/apps/web/node_modules/.bin:/app/node_modules/.bin:$PATH
ENV PORT=3000
EXPOSE 3000
WORKDIR /app/apps/web
USER 65532:65532
CMD ["sh","-c","exec node server.js"]
