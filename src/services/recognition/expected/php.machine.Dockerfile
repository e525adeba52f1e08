# Recognised by index.php: PHP 8.4, served from the root of the project. To change it, commit it as Dockerfile.
FROM dunglas/frankenphp:php8.4
WORKDIR /app
RUN for name in php; do command -v "$name" >/dev/null || missing="$missing $name"; done; [ -z "$missing" ] || { echo "This machine has no$missing: install it, or use a cluster with Docker or Kubernetes." >&2; exit 1; }
COPY --chown=65532:65532 . ./
ENV PORT=3000
EXPOSE 3000
USER 65532:65532
CMD ["sh","-c","exec env PHP_CLI_SERVER_WORKERS=4 php -S \"0.0.0.0:$PORT\" -t ."]
