# Recognised by go.mod: Go 1.24, program .. To change it, commit it as Dockerfile.
FROM golang:1.24 AS build
WORKDIR /app
ENV CGO_ENABLED=0
COPY go.mod ./
RUN --mount=type=cache,target=/root/.cache/go-build --mount=type=cache,target=/go/pkg/mod go mod download
COPY . ./
RUN --mount=type=cache,target=/root/.cache/go-build --mount=type=cache,target=/go/pkg/mod go build -trimpath -ldflags="-s -w" -o /app/out/hello .

FROM alpine:3.22
WORKDIR /app
COPY --from=build --chown=65532:65532 /app/out/ bin/
ENV PATH=/app/bin:$PATH
ENV PORT=3000
EXPOSE 3000
USER 65532:65532
CMD ["sh","-c","exec hello"]
