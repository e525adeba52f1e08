# Recognised by pyproject.toml: Python 3.13 with uv, of the workspace of services/api. To change it, commit it as services/api/Dockerfile, with root_path / and dockerfile_path services/api/Dockerfile.
FROM python:3.13 AS build
WORKDIR /app
RUN pip install --no-cache-dir uv
ENV UV_PYTHON_DOWNLOADS=never UV_LINK_MODE=copy
COPY . ./
RUN --mount=type=cache,target=/root/.cache/uv uv sync --frozen --no-dev --no-editable --package api

FROM python:3.13-slim
WORKDIR /app
ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
COPY --from=build --chown=65532:65532 /app ./
ENV PATH=/app/.venv/bin:$PATH
ENV PORT=3000
EXPOSE 3000
WORKDIR /app/services/api
USER 65532:65532
CMD ["sh","-c","exec python main.py"]
