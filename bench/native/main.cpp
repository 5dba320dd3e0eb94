// The clock of the benchmarks: starts calls when they are due, checks what they answer, prints every
// duration.
//
//   probe http  --port P --request FILE | --requests FILE --expect TEXT [--clients N] [--seconds S] SCHEDULE
//   probe stdio --lines FILE --request FILE --expect TEXT SCHEDULE -- PROGRAM...
//   probe start --lines FILE --expect TEXT SCHEDULE -- PROGRAM...
//   probe run   --expect TEXT SCHEDULE -- PROGRAM...
//
// SCHEDULE: --count N --warm-up N --rate PER_SECOND --start NANOSECONDS. Without a rate calls follow one
// another. %UNIQUE% in requests, command lines and expectations becomes another number in every call.
#include <signal.h>

#include "commands.h"
#include "text.h"

int main(int argc, char** argv) {
  using namespace bench;
  ::signal(SIGPIPE, SIG_IGN);
  const Options options(argc, argv);
  if (options.command() == "http") {
    http_calls(options).print();
  } else if (options.command() == "stdio") {
    stdio_calls(options).print();
  } else if (options.command() == "start") {
    program_starts(options).print();
  } else if (options.command() == "run") {
    program_runs(options).print();
  } else {
    give_up("unknown command " + options.command());
  }
  return 0;
}
