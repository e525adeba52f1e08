# Recognised by package.json, package-lock.json: Node.js 24 with npm. To change it, commit it as Dockerfile.
FROM node:24 AS build
WORKDIR /app
RUN for name in node npm; do command -v "$name" >/dev/null || missing="$missing $name"; done; [ -z "$missing" ] || { echo "This machine has no$missing: install it, or use a cluster with Docker or Kubernetes." >&2; exit 1; }
COPY package.json package-lock.json ./
RUN npm ci --no-audit --no-fund
COPY . ./

FROM node:24-slim
WORKDIR /app
ENV NODE_ENV=production
COPY --from=build --chown=65532:65532 /app ./
ENV PATH=/app/node_modules/.bin:$PATH
ENV PORT=3000
EXPOSE 3000
USER 65532:65532
CMD ["sh","-c","exec node server.js"]
