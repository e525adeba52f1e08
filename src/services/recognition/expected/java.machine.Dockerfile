# Recognised by pom.xml: Java 21 with Maven. To change it, commit it as Dockerfile.
FROM maven:3-eclipse-temurin-21 AS build
WORKDIR /app
RUN for name in java mvn; do command -v "$name" >/dev/null || missing="$missing $name"; done; [ -z "$missing" ] || { echo "This machine has no$missing: install it, or use a cluster with Docker or Kubernetes." >&2; exit 1; }
COPY . ./
RUN mvn --batch-mode --no-transfer-progress -Dstyle.color=never -DskipTests package
RUN mkdir -p out && cp "$(ls target/libs/*.jar target/*.jar 2>/dev/null | grep -v -e '-plain[.]jar$' -e '-sources[.]jar$' -e '-javadoc[.]jar$' -e '/original-' | head -n 1)" out/app.jar

FROM eclipse-temurin:21-jre
WORKDIR /app
COPY --from=build --chown=65532:65532 /app/out ./
ENV PORT=3000
EXPOSE 3000
USER 65532:65532
CMD ["sh","-c","exec java -XX:MaxRAMPercentage=75 -Dserver.port=\"$PORT\" -jar app.jar"]
