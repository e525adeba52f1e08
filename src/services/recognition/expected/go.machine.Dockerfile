# Recognised by go.mod: Go 1.24, program .. To change it, commit it as Dockerfile.
FROM golang:1.24 AS build
WORKDIR /app
RUN for name in go; do command -v "$name" >/dev/null || missing="$missing $name"; done; [ -z "$missing" ] || { echo "This machine has no$missing: install it, or use a cluster with Docker or Kubernetes." >&2; exit 1; }
ENV CGO_ENABLED=0
COPY go.mod ./
RUN go mod download
COPY . ./
RUN go build -trimpath -ldflags="-s -w" -o /app/out/hello .

FROM alpine:3.22
WORKDIR /app
COPY --from=build --chown=65532:65532 /app/out/ bin/
ENV PATH=/app/bin:$PATH
ENV PORT=3000
EXPOSE 3000
USER 65532:65532
CMD ["sh","-c","exec hello"]
