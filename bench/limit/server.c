/* The limit our server is held against: the same design, in C, and nothing else.
 *
 * One epoll thread receives into one large buffer, checks header and payload CRC-32C, walks the
 * records, looks the batch up in a duplicate window, and appends it with a sidecar entry to the
 * open group. One thread writes groups and syncs data and sidecar; acknowledgements leave after
 * that, joined. It accepts Ingest and Keepalive frames of the specified dialect for one topic;
 * anything else ends the connection. It is no server to use: it recovers nothing.
 *
 * usage: limit-server DATA_FILE SIDECAR_FILE [BYTES]
 * Without BYTES the files grow, as segments do; with it they are written once before, and then over
 * and over: the page cache is warm, and a sync has no new length to record.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <nmmintrin.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    HEADER = 44, ENTRY = 64, ACK_FLAG = 0x08, KEEPALIVE_FLAG = 0x20, INGEST_FLAG = 0x04,
    GROUP = 4 << 20, RECEIVE = 1 << 20, MAX_PAYLOAD = (16 << 20) + 5, CONNECTIONS = 1024,
    WINDOW = 1 << 21, EVENTS = 64,
};

typedef struct { uint64_t at, length, batch_id; int connection; } Pending;

typedef struct {
    uint8_t *data, *entries;
    size_t used, capacity, count;
    Pending *acks;
    uint64_t data_at, entries_at;
} Group;

typedef struct { int fd; uint8_t *tail; size_t held, need; uint8_t *out; size_t out_used, out_size; } Connection;

static Connection connections[CONNECTIONS];
static Group groups[2];
static int filling, syncing; /* index of the open group; whether the other one is being written */
static unsigned ordered;     /* how many groups the sync thread was given so far */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work = PTHREAD_COND_INITIALIZER;
static int data_fd, sidecar_fd, done_fd, poll_fd;
static uint64_t file_size, log_end, sidecar_end;
static uint64_t *window_ids, *window_contents;
static uint8_t ingest_prefix[12], keepalive_prefix[12], ack_prefix[12];

static void die(const char *what) { perror(what); exit(1); }

static uint32_t crc32c(const uint8_t *at, size_t size)
{
    uint64_t crc = 0xFFFFFFFFu, word;
    for (; size >= 8; at += 8, size -= 8) {
        memcpy(&word, at, 8);
        crc = _mm_crc32_u64(crc, word);
    }
    for (; size; at++, size--)
        crc = _mm_crc32_u8((uint32_t)crc, *at);
    return ~(uint32_t)crc;
}

static uint32_t u32(const uint8_t *at) { uint32_t value; memcpy(&value, at, 4); return value; }
static uint64_t u64(const uint8_t *at) { uint64_t value; memcpy(&value, at, 8); return value; }

static void make_prefix(uint8_t *prefix, uint8_t flags)
{
    memcpy(prefix, "LANC", 4);
    prefix[4] = 1, prefix[5] = flags, prefix[6] = prefix[7] = 0;
    uint32_t crc = crc32c(prefix, 8);
    memcpy(prefix + 8, &crc, 4);
}

/* Records, duplicates ------------------------------------------------------------------------ */

static int records_fit(const uint8_t *payload, size_t length, uint32_t stated)
{
    size_t position = 0;
    uint32_t count = 0;
    while (length - position >= 5 && u32(payload + position + 1) <= length - position - 5) {
        position += 5 + u32(payload + position + 1);
        count++;
    }
    return position == length && count == stated;
}

/* Return whether the batch is known; remember it when it is not. */
static int is_duplicate(uint64_t id, uint64_t content)
{
    size_t place = (id * 0x9E3779B97F4A7C15u) >> 43;
    while (window_ids[place] && window_ids[place] != id)
        place = (place + 1) & (WINDOW - 1);
    if (window_ids[place] == id && window_contents[place] == content)
        return 1;
    window_ids[place] = id, window_contents[place] = content;
    return 0;
}

/* The log ------------------------------------------------------------------------------------ */

static void write_all(int fd, const uint8_t *from, size_t size, uint64_t at)
{
    while (size) {
        uint64_t place = file_size ? at % file_size : at;
        size_t room = file_size && file_size - place < size ? file_size - place : size;
        ssize_t put = pwrite(fd, from, room, (off_t)place);
        if (put <= 0)
            die("pwrite");
        from += put, size -= (size_t)put, at += (uint64_t)put;
    }
}

static void *sync_groups(void *unused)
{
    (void)unused;
    for (unsigned performed = 0;; performed++) {
        pthread_mutex_lock(&lock);
        while (ordered == performed)
            pthread_cond_wait(&work, &lock);
        Group *group = &groups[!filling];
        pthread_mutex_unlock(&lock);
        write_all(data_fd, group->data, group->used, group->data_at);
        write_all(sidecar_fd, group->entries, group->count * ENTRY, group->entries_at);
        if (fdatasync(data_fd) || fdatasync(sidecar_fd))
            die("fdatasync");
        uint64_t one = 1;
        if (write(done_fd, &one, 8) != 8)
            die("eventfd");
    }
    return NULL;
}

static void start_sync(void)
{
    if (syncing || !groups[filling].count)
        return;
    pthread_mutex_lock(&lock);
    filling = !filling;
    syncing = 1;
    ordered++;
    pthread_cond_signal(&work);
    pthread_mutex_unlock(&lock);
    groups[filling].used = groups[filling].count = 0;
    groups[filling].data_at = log_end, groups[filling].entries_at = sidecar_end;
}

static void append(int connection, const uint8_t *header, const uint8_t *payload, uint32_t length)
{
    Group *group = &groups[filling];
    if (group->used + length > group->capacity)
        die("a group that does not fit"); /* reading stops long before */
    uint64_t id = u64(header + 12), content = u64(header + 20) ^ (uint64_t)length << 32 ^ u32(header + 36);
    uint8_t *entry = group->entries + group->count * ENTRY;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t server_time = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    int known = is_duplicate(id, content);
    group->acks[group->count] = (Pending){log_end, known ? 0 : length, id, connection};
    memset(entry, 0, ENTRY);
    memcpy(entry, &log_end, 8), memcpy(entry + 8, &length, 4), memcpy(entry + 12, header + 28, 4);
    memcpy(entry + 16, header + 12, 16), memcpy(entry + 32, &server_time, 8);
    memcpy(entry + 40, header + 36, 4);
    uint32_t crc = crc32c(entry, 60);
    memcpy(entry + 60, &crc, 4);
    if (!known) {
        memcpy(group->data + group->used, payload, length);
        group->used += length, log_end += length;
    }
    group->count++, sidecar_end += ENTRY;
}

/* Connections -------------------------------------------------------------------------------- */

static void end_connection(Connection *connection)
{
    close(connection->fd);
    connection->fd = -1;
    connection->held = connection->out_used = 0;
}

static void answer(Connection *connection, const uint8_t *prefix, uint64_t batch_id)
{
    if (connection->out_used + HEADER > connection->out_size) {
        connection->out_size = connection->out_size ? 2 * connection->out_size : 1 << 16;
        connection->out = realloc(connection->out, connection->out_size);
        if (!connection->out)
            die("realloc");
    }
    uint8_t *at = connection->out + connection->out_used;
    memset(at, 0, HEADER);
    memcpy(at, prefix, 12), memcpy(at + 12, &batch_id, 8);
    connection->out_used += HEADER;
}

static void flush(Connection *connection)
{
    size_t sent = 0;
    while (connection->fd >= 0 && sent < connection->out_used) {
        ssize_t put = send(connection->fd, connection->out + sent, connection->out_used - sent, MSG_NOSIGNAL);
        if (put < 0 && errno != EINTR) {
            end_connection(connection);
            return;
        }
        sent += put > 0 ? (size_t)put : 0;
    }
    connection->out_used = 0;
}

/* Return how many bytes of whole frames were taken, or -1 to end the connection. */
static ssize_t take_frames(int index, const uint8_t *from, size_t size)
{
    size_t position = 0;
    while (size - position >= HEADER) {
        const uint8_t *header = from + position, *payload = header + HEADER;
        uint32_t length = u32(header + 32);
        if (!memcmp(header, keepalive_prefix, 12) && !length) {
            answer(&connections[index], keepalive_prefix, 0);
        } else {
            if (memcmp(header, ingest_prefix, 12) || length > MAX_PAYLOAD)
                return -1;
            if (size - position - HEADER < length)
                break;
            if (crc32c(payload, length) != u32(header + 36) || !records_fit(payload, length, u32(header + 28)))
                return -1;
            append(index, header, payload, length);
        }
        position += HEADER + length;
    }
    return (ssize_t)position;
}

static void keep_tail(Connection *connection, const uint8_t *from, size_t size)
{
    connection->need = size >= HEADER ? HEADER + (size_t)u32(from + 32) : HEADER;
    if (connection->need > MAX_PAYLOAD + HEADER) {
        end_connection(connection);
        return;
    }
    memmove(connection->tail, from, size);
    connection->held = size;
}

/* Receive behind what is held of an unfinished frame; everything is parsed in place. */
static void receive(int index, uint8_t *buffer)
{
    Connection *connection = &connections[index];
    memcpy(buffer, connection->tail, connection->held);
    ssize_t got = recv(connection->fd, buffer + connection->held, RECEIVE, MSG_DONTWAIT);
    if (got <= 0) {
        if (got == 0 || (errno != EAGAIN && errno != EINTR))
            end_connection(connection);
        return;
    }
    size_t size = connection->held + (size_t)got;
    ssize_t taken = size < connection->need ? 0 : take_frames(index, buffer, size);
    if (taken < 0)
        end_connection(connection);
    else
        keep_tail(connection, buffer + taken, size - (size_t)taken);
}

static void acknowledge(void)
{
    Group *group = &groups[!filling];
    for (size_t i = 0; i < group->count; i++)
        if (connections[group->acks[i].connection].fd >= 0)
            answer(&connections[group->acks[i].connection], ack_prefix, group->acks[i].batch_id);
    syncing = 0;
}

static void admit(int listener)
{
    int index = 0, fd = accept(listener, NULL, NULL), yes = 1;
    if (fd < 0)
        return;
    while (index < CONNECTIONS && connections[index].fd >= 0)
        index++;
    if (index == CONNECTIONS) {
        close(fd);
        return;
    }
    Connection *connection = &connections[index];
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    connection->fd = fd, connection->held = 0, connection->need = HEADER;
    if (!connection->tail && !(connection->tail = malloc(MAX_PAYLOAD + HEADER)))
        die("malloc");
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = (uint32_t)index};
    if (epoll_ctl(poll_fd, EPOLL_CTL_ADD, fd, &event))
        die("epoll_ctl");
}

static int open_warm(const char *path)
{
    static uint8_t zeros[1 << 20];
    int fd = open(path, O_RDWR | O_CREAT, 0600);
    if (fd < 0)
        die(path);
    for (uint64_t at = 0; at < file_size; at += sizeof zeros)
        if (pwrite(fd, zeros, sizeof zeros, (off_t)at) != sizeof zeros)
            die(path);
    if (fsync(fd))
        die(path);
    return fd;
}

static int listen_somewhere(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    if (listener < 0 || bind(listener, (void *)&address, size) || listen(listener, 512) ||
        getsockname(listener, (void *)&address, &size))
        die("listen");
    printf("limit-server ready on 127.0.0.1:%d\n", ntohs(address.sin_port));
    fflush(stdout);
    return listener;
}

static void prepare(char **arguments)
{
    uint64_t asked = arguments[3] ? strtoull(arguments[3], NULL, 10) : 0;
    file_size = (asked + (1 << 20) - 1) & ~(uint64_t)((1 << 20) - 1);
    data_fd = open_warm(arguments[1]), sidecar_fd = open_warm(arguments[2]);
    done_fd = eventfd(0, EFD_NONBLOCK), poll_fd = epoll_create1(0);
    window_ids = calloc(WINDOW, 8), window_contents = calloc(WINDOW, 8);
    for (int i = 0; i < 2; i++) {
        groups[i].capacity = GROUP + 2 * (RECEIVE + MAX_PAYLOAD);
        groups[i].data = malloc(groups[i].capacity);
        groups[i].entries = malloc(groups[i].capacity / HEADER * ENTRY);
        groups[i].acks = malloc(groups[i].capacity / HEADER * sizeof(Pending));
    }
    for (int i = 0; i < CONNECTIONS; i++)
        connections[i].fd = -1;
    make_prefix(ingest_prefix, INGEST_FLAG), make_prefix(keepalive_prefix, KEEPALIVE_FLAG);
    make_prefix(ack_prefix, ACK_FLAG);
}

int main(int count, char **arguments)
{
    if (count != 3 && count != 4)
        return fprintf(stderr, "usage: limit-server DATA_FILE SIDECAR_FILE [BYTES]\n"), 2;
    prepare(arguments);
    uint8_t *buffer = malloc(MAX_PAYLOAD + HEADER + RECEIVE);
    int listener = listen_somewhere();
    struct epoll_event events[EVENTS], event = {.events = EPOLLIN, .data.u32 = CONNECTIONS};
    epoll_ctl(poll_fd, EPOLL_CTL_ADD, listener, &event);
    event.data.u32 = CONNECTIONS + 1;
    epoll_ctl(poll_fd, EPOLL_CTL_ADD, done_fd, &event);
    pthread_t worker;
    if (!buffer || pthread_create(&worker, NULL, sync_groups, NULL))
        die("start");
    for (;;) {
        int full = groups[filling].used >= GROUP; /* then only the disk is waited for */
        int ready = full ? 0 : epoll_wait(poll_fd, events, EVENTS, -1);
        uint64_t ended = 0;
        if (full)
            poll(&(struct pollfd){.fd = done_fd, .events = POLLIN}, 1, -1);
        for (int i = 0; i < ready; i++) {
            if (events[i].data.u32 == CONNECTIONS)
                admit(listener);
            else if (events[i].data.u32 < CONNECTIONS && connections[events[i].data.u32].fd >= 0 &&
                     groups[filling].used < GROUP)
                receive((int)events[i].data.u32, buffer);
        }
        if (read(done_fd, &ended, 8) == 8)
            acknowledge();
        start_sync();
        for (int i = 0; i < CONNECTIONS; i++)
            if (connections[i].out_used)
                flush(&connections[i]);
    }
}
