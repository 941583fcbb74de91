/* A fault exactly between the writing of a log and its sync, once, when the file named by FAULT is
   there; for LD_PRELOAD. Empty, it kills the process; else it names what makes the disk fail,
   behind a ! if the sync then says that it was done. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int lies(int file) {
  const char *fault = getenv("FAULT");
  char link[32], name[4096], trigger[4096] = {0};
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  ssize_t length = readlink(link, name, sizeof name);
  if (!fault || length < 4 || memcmp(name + length - 4, "-wal", 4)) return 0;
  int armed = open(fault, O_RDONLY | O_CLOEXEC);
  if (armed < 0) return 0;
  length = read(armed, trigger, sizeof trigger - 1);
  close(armed);
  unlink(fault);
  if (length <= 0) kill(getpid(), SIGKILL);
  int is_lie = trigger[0] == '!';
  int disk = open(trigger + is_lie, O_WRONLY | O_CLOEXEC);
  if (write(disk, "a test", 6) < 0) perror(trigger);
  close(disk);
  return is_lie;
}

int fdatasync(int file) {
  static int (*real)(int);
  if (!real) real = dlsym(RTLD_NEXT, "fdatasync");
  return lies(file) ? 0 : real(file);
}

int fsync(int file) {
  static int (*real)(int);
  if (!real) real = dlsym(RTLD_NEXT, "fsync");
  return lies(file) ? 0 : real(file);
}
