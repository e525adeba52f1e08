# Recognised by requirements.txt: Python 3.13 with pip. To change it, commit it as Dockerfile.
FROM python:3.13 AS build
WORKDIR /app
RUN for name in python3; do command -v "$name" >/dev/null || missing="$missing $name"; done; [ -z "$missing" ] || { echo "This machine has no$missing: install it, or use a cluster with Docker or Kubernetes." >&2; exit 1; }
COPY requirements.txt ./
RUN python3 -m venv .venv && .venv/bin/python -m pip install --disable-pip-version-check -r requirements.txt
COPY . ./

FROM python:3.13-slim
WORKDIR /app
ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
COPY --from=build --chown=65532:65532 /app ./
ENV PATH=/app/.venv/bin:$PATH
ENV PORT=3000
EXPOSE 3000
USER 65532:65532
CMD ["sh","-c","exec python main.py"]
