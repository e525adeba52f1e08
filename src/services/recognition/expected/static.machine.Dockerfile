# Recognised by index.html: files for browsers. To change it, commit it as Dockerfile.
FROM caddy:2-alpine
WORKDIR /app
RUN for name in caddy; do command -v "$name" >/dev/null || missing="$missing $name"; done; [ -z "$missing" ] || { echo "This machine has no$missing: install it, or use a cluster with Docker or Kubernetes." >&2; exit 1; }
ENV XDG_CONFIG_HOME=/tmp XDG_DATA_HOME=/tmp
COPY --chown=65532:65532 . ./
RUN printf '%s\n' '{' '  admin off' '  auto_https off' '}' ':{$PORT} {' '  root * .' '  encode zstd gzip' '  @hidden path */.* /Caddyfile' '  error @hidden 404' '  try_files {path} {path}.html {path}/index.html' '  file_server' '}' > Caddyfile
ENV PORT=3000
EXPOSE 3000
USER 65532:65532
CMD ["sh","-c","exec caddy run --config Caddyfile --adapter caddyfile"]
