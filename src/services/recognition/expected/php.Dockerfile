# Recognised by index.php: PHP 8.4, served from the root of the project. To change it, commit it as Dockerfile.
FROM dunglas/frankenphp:php8.4
WORKDIR /app
COPY --chown=65532:65532 . ./
ENV PORT=3000
EXPOSE 3000
USER 65532:65532
CMD ["sh","-c","exec frankenphp php-server --listen \":$PORT\" --root ."]
