/** Causes that a program shows by what it writes: while an image is built, a service starts or a command runs. */
import { causesOf } from '#deployments/causes/cause.ts';

export const PROGRAM_CAUSES = causesOf(['BUILD_FAILED', 'NOT_READY', 'EXECUTION_FAILED'], {
  OUT_OF_MEMORY: {
    summary: 'The program took more memory than it may.',
    fix: 'Give the service more memory, or lower the limit of the heap that the program sets for itself.',
    message: /out of memory|took more than its \d+ MiB of memory|\bOOMKilled\b/i,
    output:
      /JavaScript heap out of memory|java\.lang\.OutOfMemoryError|^MemoryError\b|fatal error: runtime: out of memory|Cannot allocate memory|std::bad_alloc|\bOOMKilled\b/,
  },
  DISK_FULL: {
    summary: 'The program could not write, because the disk or the storage is full.',
    fix: 'Give the service a larger storage, or remove what is no longer needed.',
    message: /no space left|ENOSPC|EDQUOT/i,
    output: /No space left on device|\bENOSPC\b|\bEDQUOT\b|Disk quota exceeded/i,
  },
  TOO_MANY_PROCESSES: {
    summary: 'The program could not start a further process or thread.',
    fix: 'Lower the number of its workers.',
    output:
      /can't start new thread|unable to create (?:new )?native thread|pthread_create failed|fork: .*(?:temporarily unavailable|EAGAIN)/i,
  },
  TOO_MANY_FILES: {
    summary: 'The program has too many files or connections open.',
    fix: 'Have the program close what it no longer uses; a pool limits connections.',
    output: /\bEMFILE\b|too many open files/i,
  },
  PORT_IN_USE: {
    summary: 'The port that the program wants to listen on is taken.',
    fix: 'Listen once only, and on the port in the variable PORT.',
    message: /^[^\n]* is taken by /,
    output: /\bEADDRINUSE\b|address already in use/i,
  },
  PORT_PRIVILEGED: {
    summary: 'The program may not listen on its port: those below 1024 take a right that it does not have.',
    fix: 'Listen on a port from 1024 up, and set it as the internal port of the service.',
    output: /listen EACCES|bind.{0,80}permission denied|permission denied.{0,40}\b(?:bind|listen)/i,
  },
  WRONG_ARCHITECTURE: {
    summary: 'The program was made for another processor or operating system than the one of the machine.',
    fix: 'Build it for the platform of the cluster.',
    message: /exec format error|ENOEXEC/i,
    // Where a shell takes what the kernel does not, it reads the program as a script.
    output: /exec format error|cannot execute binary file|: \u007f?ELF\W/i,
  },
  LIBRARY_MISSING: {
    summary: 'The program needs a library of the system that is not there, or is too old.',
    fix: 'Install the library in the Dockerfile, or use the base image that the program was built on.',
    output: /error while loading shared libraries|version `GLIBC|cannot open shared object file/,
  },
  MODULE_MISSING: {
    summary: 'The program needs a module that is not there.',
    fix: 'Add it to the dependencies, not only to those for development, and see that the image copies it.',
    output:
      /Cannot find (?:module|package) |\bERR_MODULE_NOT_FOUND\b|ModuleNotFoundError|No module named|ClassNotFoundException|NoClassDefFoundError|cannot load such file/,
  },
  SYNTAX: {
    summary: 'The source code of a program or script has a mistake of syntax.',
    fix: 'Correct the place that the lines show; a newer syntax than the installed version knows looks the same.',
    output: /\b(?:SyntaxError|IndentationError|ParseError)\b|syntax error,? (?:unexpected|near)|Syntax error:/,
  },
  VARIABLE_MISSING: {
    summary: 'The program misses a variable of its environment.',
    fix: 'Add the variable, or the secret, to the service, its environment or its project.',
    output:
      /\b(?:environment|env) ?var(?:iable)?s?\b.{0,80}\b(?:not (?:set|found|defined)|unset|missing|required|undefined|must be)\b|\b(?:missing|required|undefined|unset)\b.{0,40}\benv(?:ironment)? ?var(?:iable)?|KeyError: '[A-Z][A-Z0-9_]{2,}'|: parameter (?:not set|null or not set)/i,
  },
  DATABASE_LOGIN: {
    summary: 'The database refuses the user name or the password of the program.',
    fix: 'Take user and password from the variables of the database, as aliases, in place of copies.',
    output:
      /password authentication failed|Access denied for user|\bWRONGPASS\b|\bNOAUTH\b|role "[^"]*" does not exist/,
  },
  DATABASE_MISSING: {
    summary: 'The database server has no database of the name that the program asks for.',
    fix: 'Correct the name, or create the database before the program starts.',
    output: /database "[^"]*" does not exist|Unknown database '/,
  },
  DATABASE_SCHEMA: {
    summary: 'The database lacks a table or column that the program expects.',
    fix: 'Run the migrations before the program starts, for example with a lifecycle job.',
    output:
      /(?:relation|column) "[^"]*" does not exist|Table '[^']*' doesn't exist|no such (?:table|column):|Unknown column '/,
  },
  DATABASE_STARTING: {
    summary: 'The database was not ready yet.',
    fix: 'Put the database into an earlier stage, and let the program try again for a while.',
    output: /the database system is (?:starting up|not yet accepting|in recovery)|\bLOADING Redis is loading/i,
  },
  DATABASE_CONNECTIONS: {
    summary: 'The database takes no further connections.',
    fix: 'Lower the size of the pools, or the number of instances; or use the pooler.',
    output: /too many (?:clients already|connections)|remaining connection slots are reserved/i,
  },
  CERTIFICATE: {
    summary: 'The certificate of a server that was called is not trusted.',
    fix: 'Install ca-certificates in the image, add the authority of the server, or renew the certificate.',
    output:
      /self[- ]signed certificate|unable to (?:verify the first|get (?:local )?issuer) cert|certificate verify failed|x509: certificate|CERT_HAS_EXPIRED|certificate has expired|server certificate verification failed/i,
  },
  NAME_UNKNOWN: {
    summary: 'The name of a server that was called is not known.',
    fix: 'Correct the name. Inside an environment services are reached by the host in the built-in variables.',
    output:
      /\bENOTFOUND\b|\bEAI_AGAIN\b|Name or service not known|no such host|name resolution|could not (?:translate|resolve) host|nodename nor servname|bad address '/i,
  },
  CONNECTION_REFUSED: {
    summary: 'A server that was called does not listen there.',
    fix: 'Check host and port, and that the server is deployed in an earlier stage. `localhost` is the program itself.',
    output: /\bECONNREFUSED\b|connection refused/i,
  },
  CONNECTION_TIMEOUT: {
    summary: 'A server that was called gave no answer.',
    fix: 'Check host and port, and the firewalls and rules between the two.',
    output:
      /\bETIMEDOUT\b|\bEHOSTUNREACH\b|\bENETUNREACH\b|connection timed out|connect timeout|i\/o timeout|no route to host|network is unreachable/i,
  },
  READ_ONLY: {
    summary: 'The program writes to a file system that is read-only.',
    fix: 'Have it write below a storage of the service, or to /tmp.',
    output: /\bEROFS\b|read-only file system/i,
  },
  PROGRAM_MISSING: {
    summary: 'The command names a program that is not there.',
    fix: 'Correct the command or the entry point, or install the program in the Dockerfile.',
    message: /executable file not found|cannot be started.*(?:ENOENT|no such file)|with status 127\b/i,
    output: /executable file not found|command not found|: not found$|\bspawn \S+ ENOENT\b/,
  },
  PROGRAM_NOT_EXECUTABLE: {
    summary: 'The command names a file that may not be executed.',
    fix: 'Make it executable (`chmod +x`) and commit the mode, or start it with its interpreter.',
    message: /cannot be started.*(?:EACCES|permission denied)|with status 126\b/i,
  },
  FILE_FORBIDDEN: {
    summary: 'The program may not read or write a file.',
    fix: 'Set the owner of the file in the Dockerfile (`COPY --chown`), or have the program use another place.',
    output: /\bEACCES\b|\bEPERM\b|permission denied|operation not permitted/i,
  },
  FILE_MISSING: {
    summary: 'The program needs a file that is not there.',
    fix: 'Check the path and the working directory, and that the image has the file.',
    output: /\bENOENT\b|no such file or directory|FileNotFoundError/i,
  },
  ARGUMENT_UNKNOWN: {
    summary: 'The program does not know an option or argument that it was started with.',
    fix: 'Correct the arguments of the service, or the CMD of the Dockerfile.',
    output:
      /\b(?:unknown|unrecognized|invalid|bad|illegal) (?:option|flag)|\b(?:unknown|unrecognized) (?:argument|command|subcommand)|flag provided but not defined|no such option/i,
  },
  CRASHED: {
    summary: 'The program crashed: it used memory that is not its own, or ended itself.',
    fix: 'Look for the fault in the program or in a native module; a base image that it was not built for has the same effect.',
    message: /SIGSEGV|SIGABRT|SIGILL|SIGBUS|with status 13[2459]\b/,
    output: /Segmentation fault|core dumped|\bSIGSEGV\b|^panic: |fatal error: |Native stack trace/,
  },
});
