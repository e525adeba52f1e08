import {
  copyOwned,
  run,
  serverOf,
  startWith,
  type Project,
  type ProjectOptions,
  type Unclear,
} from '#services/recognition/project.ts';
import type { ProjectFiles } from '#services/recognition/project-files.ts';
import { releaseFor } from '#services/recognition/versions.ts';

/** Java release that a build names: in properties of Maven, or in the toolchain of Gradle. */
const RELEASE =
  /<(?:maven\.compiler\.(?:release|source|target)|java\.version|release)>\s*(?:1\.)?(\d+)\s*<|JavaLanguageVersion\.of\((\d+)\)|(?:source|target)Compatibility\s*=\s*['"]?(?:JavaVersion\.VERSION_)?(?:1[._])?(\d+)/;

const GRADLE = ['build.gradle', 'build.gradle.kts'];

/** Recognises a project of Maven or Gradle. */
export async function recogniseJava(files: ProjectFiles, options: ProjectOptions): Promise<Project | null> {
  const [file] = files.those('pom.xml', ...GRADLE);
  if (file === undefined) return null;
  const text = await files.read(file);
  const named = RELEASE.exec(text)?.slice(1).find(Boolean);
  const release = releaseFor('java', named && `>=${named}`);
  const build = file === 'pom.xml' ? mavenOf(files, release) : gradleOf(files, release);
  const isQuarkus = /\bio\.quarkus\b/.test(text);
  return {
    language: 'JAVA',
    home: files,
    because: `${file}: Java ${release} with ${build.tool}`,
    programs: ['java', ...build.programs],
    build: {
      image: build.image,
      lines: ['COPY . ./', run(options, build.command, ...build.caches), `RUN ${collect(build.output, isQuarkus)}`],
    },
    final: { image: `eclipse-temurin:${release}-jre`, lines: [copyOwned('/app/out', 'build')] },
    command: startWith((await files.procfile(options)) ?? startOf(text, options, isQuarkus)),
  };
}

/** Servers that listen for requests as soon as the program runs. */
const SERVERS = /\bio\.quarkus\b|\bspring-boot-starter-(?:web|webflux|jetty|undertow|tomcat)\b|\bio\.micronaut\b/;

function startOf(text: string, { port }: ProjectOptions, isQuarkus: boolean): string | Unclear {
  const jar = isQuarkus ? 'quarkus-app/quarkus-run.jar' : 'app.jar';
  const java = 'java -XX:MaxRAMPercentage=75';
  if (port !== null) return `${java} -D${isQuarkus ? 'quarkus.http.port' : 'server.port'}="$PORT" -jar ${jar}`;
  return SERVERS.test(text)
    ? serverOf('a web application in Java', ['java', '-jar', jar, 'report'])
    : `${java} -jar ${jar}`;
}

/** Returns the command that collects what the image needs: the folder of Quarkus, or the only archive that is a program. */
const collect = (output: string, isQuarkus: boolean): string =>
  isQuarkus
    ? `mkdir -p out && cp -R ${output}/quarkus-app out/`
    : `mkdir -p out && cp "$(ls ${output}/libs/*.jar ${output}/*.jar 2>/dev/null | grep -v -e '-plain[.]jar$' -e '-sources[.]jar$' -e '-javadoc[.]jar$' -e '/original-' | head -n 1)" out/app.jar`;

function mavenOf(files: ProjectFiles, release: string) {
  const hasWrapper = files.has('mvnw');
  return {
    tool: 'Maven',
    image: hasWrapper ? `eclipse-temurin:${release}-jdk` : `maven:3-eclipse-temurin-${release}`,
    programs: hasWrapper ? [] : ['mvn'],
    command: `${hasWrapper ? 'sh mvnw' : 'mvn'} --batch-mode --no-transfer-progress -Dstyle.color=never -DskipTests package`,
    caches: ['/root/.m2'],
    output: 'target',
  };
}

function gradleOf(files: ProjectFiles, release: string) {
  const hasWrapper = files.has('gradlew');
  return {
    tool: 'Gradle',
    image: hasWrapper ? `eclipse-temurin:${release}-jdk` : `gradle:jdk${release}`,
    programs: hasWrapper ? [] : ['gradle'],
    command: `${hasWrapper ? 'sh gradlew' : 'gradle'} --no-daemon --console=plain assemble`,
    caches: ['/root/.gradle'],
    output: 'build',
  };
}
