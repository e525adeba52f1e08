# Recognised by Cargo.toml: Rust, program hello. To change it, commit it as Dockerfile.
FROM rust:1-bookworm AS build
WORKDIR /app
COPY . ./
RUN --mount=type=cache,target=/usr/local/cargo/registry cargo build --release --locked --bin hello && mkdir -p out && cp target/release/hello out/

FROM debian:bookworm-slim
WORKDIR /app
COPY --from=build --chown=65532:65532 /app/out/ bin/
ENV PATH=/app/bin:$PATH
ENV PORT=3000
EXPOSE 3000
USER 65532:65532
CMD ["sh","-c","exec hello"]
