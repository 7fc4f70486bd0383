/* Fails, delays and records what a process asks of the files in one folder (LD_PRELOAD).
 *
 * LANCE_FAULT_ROOT     the folder, absolute.
 * LANCE_FAULT_CONTROL  a file of `struct control`, mapped: the rules, which its owner changes while
 *                      the process runs, and what became of them.
 * LANCE_FAULT_TRACE    a file to which every change is appended, in the order in which it was made;
 *                      absent: nothing is recorded.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum call { OPEN, CREATE, WRITE, DURABLE, SYNC, TRUNCATE, RENAME, REMOVE, MKDIR, SYNC_DIR };
enum when { NEVER, BEFORE, AFTER, SHORT };
enum event {
    E_WRITE = 1, E_DURABLE, E_TRUNCATE, E_SYNC_BEGIN, E_SYNC_END, E_CREATE, E_RENAME, E_REMOVE,
    E_MKDIR, E_SYNC_DIR_BEGIN, E_SYNC_DIR_END
};

/* Of the calls in `calls` on a path with `path` in it: after `skip` of them, `count` are hit. */
struct rule {
    uint32_t when, calls, error, skip, count, delay_us, seen, hits;
    char path[96];
};
struct control {
    uint64_t events, unused;
    struct rule rules[16];
};
struct record {
    uint8_t kind, ok;
    uint16_t names;
    uint32_t size;
    uint64_t inode, offset;
};

#define MOST_FDS 65536
static struct control *control;
static const char *root;
static size_t root_size;
static int trace = -1;
static uint64_t syncs;
static char *paths[MOST_FDS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static ssize_t (*real_write)(int, const void *, size_t);
static ssize_t (*real_pwritev2)(int, const struct iovec *, int, off_t, int);
static int (*real_open)(const char *, int, ...);
static int (*real_close)(int);
static int (*real_fsync)(int), (*real_fdatasync)(int);
static int (*real_ftruncate)(int, off_t);
static int (*real_rename)(const char *, const char *);
static int (*real_unlink)(const char *), (*real_rmdir)(const char *);
static int (*real_mkdir)(const char *, mode_t);

static void fatal(const char *what)
{
    perror(what);
    _exit(97);
}

static void *next(const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);
    if (found == NULL)
        fatal(name);
    return found;
}

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("LANCE_FAULT_CONTROL"), *traced = getenv("LANCE_FAULT_TRACE");
    int fd;

    real_write = next("write");
    real_pwritev2 = next("pwritev64v2");
    real_open = next("open64");
    real_close = next("close");
    real_fsync = next("fsync");
    real_fdatasync = next("fdatasync");
    real_ftruncate = next("ftruncate64");
    real_rename = next("rename");
    real_unlink = next("unlink");
    real_rmdir = next("rmdir");
    real_mkdir = next("mkdir");
    root = getenv("LANCE_FAULT_ROOT");
    if (root == NULL || path == NULL)
        return;
    root_size = strlen(root);
    fd = real_open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        fatal(path);
    control = mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (control == MAP_FAILED)
        fatal(path);
    real_close(fd);
    if (traced != NULL) {
        trace = real_open(traced, O_WRONLY | O_APPEND | O_CLOEXEC);
        if (trace < 0)
            fatal(traced);
    }
}

/* The part of a path below the folder, or NULL: it lies elsewhere. */
static const char *inside(const char *path)
{
    if (control == NULL || path == NULL || strncmp(path, root, root_size) != 0)
        return NULL;
    return path[root_size] == '/' || path[root_size] == '\0' ? path + root_size : NULL;
}

static const char *path_of(int fd)
{
    return fd >= 0 && fd < MOST_FDS ? paths[fd] : NULL;
}

static void append(uint8_t kind, uint8_t ok, uint64_t inode, uint64_t offset, const char *names,
                   size_t names_size, const struct iovec *parts, int count, size_t size)
{
    struct record record = {kind, ok, (uint16_t)names_size, (uint32_t)size, inode, offset};
    size_t total = sizeof record + names_size + size, done = 0;
    char *whole, *to;

    if (trace < 0)
        return;
    whole = to = malloc(total);
    if (whole == NULL)
        fatal("malloc");
    to = mempcpy(to, &record, sizeof record);
    to = mempcpy(to, names, names_size);
    for (; size > 0; parts++, count--) {
        size_t part = parts->iov_len < size ? parts->iov_len : size;
        to = mempcpy(to, parts->iov_base, part);
        size -= part;
    }
    pthread_mutex_lock(&lock);
    while (done < total) {
        ssize_t got = real_write(trace, whole + done, total - done);
        if (got <= 0)
            fatal("trace");
        done += (size_t)got;
    }
    __atomic_add_fetch(&control->events, 1, __ATOMIC_SEQ_CST);
    pthread_mutex_unlock(&lock);
    free(whole);
}

static void append_names(uint8_t kind, uint64_t inode, const char *one, const char *two)
{
    char names[2 * PATH_MAX];
    size_t size = strlen(one) + 1;

    memcpy(names, one, size);
    if (two != NULL) {
        memcpy(names + size, two, strlen(two) + 1);
        size += strlen(two) + 1;
    }
    append(kind, 1, inode, 0, names, size - 1, NULL, 0, 0);
}

static uint64_t inode_of(int fd)
{
    struct stat found;
    return fstat(fd, &found) == 0 ? (uint64_t)found.st_ino : 0;
}

/* What is to happen at a call: sleeps where that is asked for, and says when the error comes. */
static enum when judge(enum call call, const char *path, int *error)
{
    enum when found = NEVER;

    for (size_t number = 0; number < 16; number++) {
        struct rule *rule = &control->rules[number];
        enum when when = (enum when)__atomic_load_n(&rule->when, __ATOMIC_ACQUIRE);
        uint32_t seen;
        if (when == NEVER || !(rule->calls & 1u << call) || strstr(path, rule->path) == NULL)
            continue;
        seen = __atomic_fetch_add(&rule->seen, 1, __ATOMIC_SEQ_CST);
        if (seen < rule->skip || seen - rule->skip >= rule->count)
            continue;
        __atomic_add_fetch(&rule->hits, 1, __ATOMIC_SEQ_CST);
        if (rule->delay_us) {
            struct timespec pause = {rule->delay_us / 1000000, rule->delay_us % 1000000 * 1000L};
            nanosleep(&pause, NULL);
        }
        if (rule->error && found == NEVER) {
            *error = (int)rule->error;
            found = when;
        }
    }
    return found;
}

#define FAIL(error) (errno = (error), -1)

static int note_open(int fd, const char *path)
{
    if (fd >= 0 && fd < MOST_FDS)
        paths[fd] = strdup(path);
    return fd;
}

static int do_open(const char *path, int flags, mode_t mode)
{
    const char *name = inside(path);
    enum call call = flags & O_CREAT ? CREATE : OPEN;
    enum when when;
    int error = 0, fd;
    struct stat before;

    if (name == NULL)
        return real_open(path, flags, mode);
    when = judge(call, name, &error);
    if (when == BEFORE || when == SHORT)
        return FAIL(error);
    call = call == CREATE && stat(path, &before) == 0 ? OPEN : call;
    fd = real_open(path, flags, mode);
    if (fd < 0)
        return fd;
    if (call == CREATE)
        append_names(E_CREATE, inode_of(fd), name, NULL);
    if (flags & O_TRUNC)
        append(E_TRUNCATE, 1, inode_of(fd), 0, NULL, 0, NULL, 0, 0);
    if (when == AFTER) {
        real_close(fd);
        return FAIL(error);
    }
    return note_open(fd, name);
}

int open64(const char *path, int flags, ...)
{
    va_list more;
    mode_t mode;

    va_start(more, flags);
    mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0;
    va_end(more);
    return do_open(path, flags, mode);
}

int close(int fd)
{
    if (path_of(fd) != NULL) {
        char *path = paths[fd];
        paths[fd] = NULL;
        free(path);
    }
    return real_close(fd);
}

ssize_t pwritev64v2(int fd, const struct iovec *parts, int count, off64_t offset, int flags)
{
    const char *path = path_of(fd);
    int durable = flags & (RWF_DSYNC | RWF_SYNC), error = 0;
    struct iovec half;
    enum when when;
    ssize_t done;

    if (path == NULL)
        return real_pwritev2(fd, parts, count, offset, flags);
    when = judge(durable ? DURABLE : WRITE, path, &error);
    if (when == BEFORE)
        return FAIL(error);
    if (when == SHORT && count == 1 && parts->iov_len > 1) {
        half.iov_base = parts->iov_base;
        half.iov_len = parts->iov_len / 2;
        parts = &half;
    }
    done = real_pwritev2(fd, parts, count, offset, flags);
    if (done > 0)
        append(durable ? E_DURABLE : E_WRITE, when != AFTER, inode_of(fd), (uint64_t)offset, NULL, 0,
               parts, count, (size_t)done);
    return done >= 0 && when == AFTER ? FAIL(error) : done;
}

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t offset)
{
    struct iovec part = {(void *)data, size};
    return pwritev64v2(fd, &part, 1, offset, 0);
}

ssize_t write(int fd, const void *data, size_t size)
{
    struct iovec part = {(void *)data, size};
    off_t offset;
    ssize_t done;

    if (path_of(fd) == NULL)
        return real_write(fd, data, size);
    offset = lseek(fd, 0, SEEK_CUR);
    done = pwritev64v2(fd, &part, 1, offset, 0);
    if (done > 0)
        lseek(fd, offset + done, SEEK_SET);
    return done;
}

static int do_sync(int fd, int (*sync)(int))
{
    const char *path = path_of(fd);
    struct stat found;
    uint64_t number, inode;
    enum when when;
    int error = 0, result, folder;

    if (path == NULL)
        return sync(fd);
    folder = fstat(fd, &found) == 0 && S_ISDIR(found.st_mode);
    inode = folder ? 0 : (uint64_t)found.st_ino;
    number = __atomic_add_fetch(&syncs, 1, __ATOMIC_SEQ_CST);
    append(folder ? E_SYNC_DIR_BEGIN : E_SYNC_BEGIN, 1, inode, number, path, strlen(path), NULL, 0,
           0);
    when = judge(folder ? SYNC_DIR : SYNC, path, &error);
    result = when == BEFORE || when == SHORT ? FAIL(error) : sync(fd);
    if (result == 0 && when == AFTER)
        result = FAIL(error);
    error = errno;
    append(folder ? E_SYNC_DIR_END : E_SYNC_END, result == 0, inode, number, path, strlen(path),
           NULL, 0, 0);
    errno = error;
    return result;
}

int fsync(int fd)
{
    return do_sync(fd, real_fsync);
}

int fdatasync(int fd)
{
    return do_sync(fd, real_fdatasync);
}

int ftruncate64(int fd, off64_t size)
{
    const char *path = path_of(fd);
    enum when when;
    int error = 0, result;

    if (path == NULL)
        return real_ftruncate(fd, size);
    when = judge(TRUNCATE, path, &error);
    if (when == BEFORE || when == SHORT)
        return FAIL(error);
    result = real_ftruncate(fd, size);
    if (result == 0)
        append(E_TRUNCATE, 1, inode_of(fd), (uint64_t)size, NULL, 0, NULL, 0, 0);
    return result == 0 && when == AFTER ? FAIL(error) : result;
}

int rename(const char *from, const char *to)
{
    const char *old = inside(from), *new = inside(to);
    enum when when;
    int error = 0, result;

    if (old == NULL || new == NULL)
        return real_rename(from, to);
    when = judge(RENAME, new, &error);
    if (when == BEFORE || when == SHORT)
        return FAIL(error);
    result = real_rename(from, to);
    if (result == 0)
        append_names(E_RENAME, 0, old, new);
    return result == 0 && when == AFTER ? FAIL(error) : result;
}

static int change_name(enum call call, enum event event, const char *path,
                       int (*change)(const char *, mode_t), mode_t mode)
{
    const char *name = inside(path);
    enum when when;
    int error = 0, result;

    if (name == NULL)
        return change(path, mode);
    when = judge(call, name, &error);
    if (when == BEFORE || when == SHORT)
        return FAIL(error);
    result = change(path, mode);
    if (result == 0)
        append_names((uint8_t)event, 0, name, NULL);
    return result == 0 && when == AFTER ? FAIL(error) : result;
}

static int plain_unlink(const char *path, mode_t mode)
{
    (void)mode;
    return real_unlink(path);
}

static int plain_rmdir(const char *path, mode_t mode)
{
    (void)mode;
    return real_rmdir(path);
}

int unlink(const char *path)
{
    return change_name(REMOVE, E_REMOVE, path, plain_unlink, 0);
}

int rmdir(const char *path)
{
    return change_name(REMOVE, E_REMOVE, path, plain_rmdir, 0);
}

int mkdir(const char *path, mode_t mode)
{
    return change_name(MKDIR, E_MKDIR, path, real_mkdir, mode);
}
