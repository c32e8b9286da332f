/*
  Preloaded into a server under test: kills it at the n-th change of a file from now, before the change is made.

  The file that TEAK_STOP_FILE names holds a number (8 bytes), which the test writes and this maps. 0: nothing is counted. Otherwise each call that changes a file
  or a directory counts it down, and at 0 the process is killed. Writes are seen by other processes at once and survive the kill, so between two such calls
  there is nothing that a kill could leave otherwise; syncs do not count.

  If the second number in the file is 1, the thread that makes the change is held instead, which 2 in its place tells, until there is another number.
*/
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static int64_t* countdown; /* and behind it, whether to hold */

__attribute__((constructor)) static void begin(void) {
    const char* path = getenv("TEAK_STOP_FILE");
    int file = path ? open(path, O_RDWR) : -1;
    if (file < 0) return;
    void* at = mmap(NULL, 2 * sizeof *countdown, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (at != MAP_FAILED) countdown = at;
}

static void step(void) {
    if (!countdown || __atomic_load_n(countdown, __ATOMIC_SEQ_CST) <= 0) return;
    if (__atomic_sub_fetch(countdown, 1, __ATOMIC_SEQ_CST) != 0) return;
    int64_t hold = 1;
    if (__atomic_compare_exchange_n(countdown + 1, &hold, 2, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
        while (__atomic_load_n(countdown + 1, __ATOMIC_SEQ_CST) == 2)
            usleep(1000);
        return;
    }
    kill(getpid(), SIGKILL);
    for (;;)
        pause();
}

/* Sockets and pipes are no files. */
static void step_if_file(int file) {
    struct stat found;
    if (countdown && *countdown > 0 && fstat(file, &found) == 0 && S_ISREG(found.st_mode)) step();
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t write(int file, const void* from, size_t bytes) {
    static ssize_t (*real)(int, const void*, size_t);
    if (!real) real = REAL(write);
    step_if_file(file);
    return real(file, from, bytes);
}

ssize_t writev(int file, const struct iovec* from, int parts) {
    step_if_file(file);
    return REAL(writev)(file, from, parts);
}

ssize_t pwrite64(int file, const void* from, size_t bytes, off64_t at) {
    static ssize_t (*real)(int, const void*, size_t, off64_t);
    if (!real) real = REAL(pwrite64);
    step();
    return real(file, from, bytes, at);
}

int ftruncate64(int file, off64_t bytes) {
    step();
    return REAL(ftruncate64)(file, bytes);
}

int fallocate(int file, int mode, off_t at, off_t bytes) {
    step();
    return REAL(fallocate)(file, mode, at, bytes);
}

int fallocate64(int file, int mode, off64_t at, off64_t bytes) {
    step();
    return REAL(fallocate64)(file, mode, at, bytes);
}

int rename(const char* from, const char* to) {
    step();
    return REAL(rename)(from, to);
}

int unlink(const char* path) {
    step();
    return REAL(unlink)(path);
}

int mkdir(const char* path, mode_t mode) {
    step();
    return REAL(mkdir)(path, mode);
}

int rmdir(const char* path) {
    step();
    return REAL(rmdir)(path);
}

int open64(const char* path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    if (flags & (O_CREAT | O_TRUNC)) step();
    return REAL(open64)(path, flags, mode);
}
