/* A disk that fails: of the calls that change files below one folder, the nth fails, or all from the nth on. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static char folder[PATH_MAX];
static long n_calls, fail_from = -1, fail_until = -1;
static int failure;

/* Calls are counted from here on; those from `first` until before `last` fail. */
void disk_fails(const char *below, long first, long last, int number) {
    strncpy(folder, below, sizeof folder - 1);
    n_calls = 0;
    fail_from = first;
    fail_until = last;
    failure = number;
}

long disk_calls(void) { return n_calls; }

static int fails(int descriptor) {
    char link[64], path[PATH_MAX];
    if (fail_from < 0) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    if (strncmp(path, folder, strlen(folder))) return 0;
    n_calls++;
    if (n_calls < fail_from || n_calls >= fail_until) return 0;
    errno = failure;
    return 1;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t pwrite(int descriptor, const void *data, size_t size, off_t place) {
    return fails(descriptor) ? -1 : REAL(pwrite)(descriptor, data, size, place);
}
ssize_t pwrite64(int descriptor, const void *data, size_t size, off64_t place) {
    return fails(descriptor) ? -1 : REAL(pwrite64)(descriptor, data, size, place);
}
ssize_t write(int descriptor, const void *data, size_t size) {
    return fails(descriptor) ? -1 : REAL(write)(descriptor, data, size);
}
int fsync(int descriptor) { return fails(descriptor) ? -1 : REAL(fsync)(descriptor); }
int fdatasync(int descriptor) { return fails(descriptor) ? -1 : REAL(fdatasync)(descriptor); }
int ftruncate(int descriptor, off_t size) { return fails(descriptor) ? -1 : REAL(ftruncate)(descriptor, size); }
int ftruncate64(int descriptor, off64_t size) {
    return fails(descriptor) ? -1 : REAL(ftruncate64)(descriptor, size);
}
