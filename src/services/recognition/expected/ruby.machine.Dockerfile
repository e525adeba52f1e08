# Recognised by Gemfile: Ruby 3.4. To change it, commit it as Dockerfile.
FROM ruby:3.4 AS build
WORKDIR /app
RUN for name in ruby bundle; do command -v "$name" >/dev/null || missing="$missing $name"; done; [ -z "$missing" ] || { echo "This machine has no$missing: install it, or use a cluster with Docker or Kubernetes." >&2; exit 1; }
COPY Gemfile ./
RUN bundle config set --local path vendor/bundle && bundle config set --local without development:test
RUN bundle install
COPY . ./

FROM ruby:3.4-slim
WORKDIR /app
ENV RACK_ENV=production RAILS_ENV=production RAILS_LOG_TO_STDOUT=1 RAILS_SERVE_STATIC_FILES=1
COPY --from=build --chown=65532:65532 /app ./
ENV PORT=3000
EXPOSE 3000
USER 65532:65532
CMD ["sh","-c","exec bundle exec puma --bind \"tcp://0.0.0.0:$PORT\""]
