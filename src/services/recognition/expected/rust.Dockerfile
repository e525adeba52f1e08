# Recognised by Cargo.toml: Rust, program hello. To change it, commit it as Dockerfile.
FROM rust:1-bookworm AS build
WORKDIR /app
COPY . ./
RUN --mount=type=cache,target=/usr/local/cargo/registry cargo build --release --locked --bin hello && mkdir -p out && cp target/release/hello out/app

FROM debian:bookworm-slim
WORKDIR /app
ENV PORT=3000
COPY --from=build --chown=65532:65532 /app/out/app ./
EXPOSE 3000
USER 65532:65532
CMD ["sh","-c","exec ./app"]
