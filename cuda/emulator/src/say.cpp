#include "driver.h"

#include <stdarg.h>
#include <stdio.h>

namespace rt {

void say(const char* format, ...) {
  fputs("emulator: ", stderr);
  va_list list;
  va_start(list, format);
  vfprintf(stderr, format, list);
  va_end(list);
  fputc('\n', stderr);
}

}  // namespace rt
