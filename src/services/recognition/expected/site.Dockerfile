# Recognised by package.json, package-lock.json: files for browsers, made by vite. To change it, commit it as Dockerfile.
FROM node:24 AS build
WORKDIR /app
COPY package.json package-lock.json ./
RUN --mount=type=cache,target=/root/.npm npm ci --no-audit --no-fund
COPY . ./
RUN npm run build

FROM caddy:2-alpine
WORKDIR /app
ENV XDG_CONFIG_HOME=/tmp XDG_DATA_HOME=/tmp
COPY --from=build --chown=65532:65532 /app/dist ./
RUN printf '%s\n' '{' '  admin off' '  auto_https off' '}' ':{$PORT} {' '  root * .' '  encode zstd gzip' '  @hidden path */.* /Caddyfile' '  error @hidden 404' '  @page {' '    not path_regexp [.][A-Za-z0-9]+$' '    not file' '  }' '  rewrite @page /index.html' '  file_server' '}' > Caddyfile
ENV PORT=3000
EXPOSE 3000
USER 65532:65532
CMD ["sh","-c","exec caddy run --config Caddyfile --adapter caddyfile"]
