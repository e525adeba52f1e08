# Recognised by requirements.txt: Python 3.13 with pip. To change it, commit it as Dockerfile.
FROM python:3.13 AS build
WORKDIR /app
COPY requirements.txt ./
RUN --mount=type=cache,target=/root/.cache/pip python3 -m venv .venv && .venv/bin/python -m pip install --disable-pip-version-check -r requirements.txt
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
