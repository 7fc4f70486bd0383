/* Sends Ingest frames of one kind as fast as the window allows, until all are acknowledged.
 *
 * usage: limit-load PORT FRAMES RECORDS VALUE_BYTES WINDOW FIRST_BATCH_ID
 * Prints the seconds from the first byte sent to the last acknowledgement.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <nmmintrin.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

enum { HEADER = 44, INGEST_FLAG = 0x04, ACK_FLAG = 0x08, BUSY_FLAG = 0x10, BURST = 1 << 20, BUFFER = 1 << 18 };

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

static uint8_t *make_frame(uint32_t records, uint32_t value, uint32_t *size)
{
    uint32_t length = records * (5 + value), crc;
    uint64_t timestamp = 1;
    uint8_t *frame = calloc(1, HEADER + length), *at = frame + HEADER;
    if (!frame)
        die("calloc");
    for (uint32_t i = 0; i < records; i++, at += 5 + value)
        at[0] = 1, memcpy(at + 1, &value, 4), memset(at + 5, 'x', value);
    memcpy(frame, "LANC\1", 5), frame[5] = INGEST_FLAG;
    crc = crc32c(frame, 8), memcpy(frame + 8, &crc, 4);
    memcpy(frame + 20, &timestamp, 8), memcpy(frame + 28, &records, 4);
    memcpy(frame + 32, &length, 4);
    crc = crc32c(frame + HEADER, length), memcpy(frame + 36, &crc, 4);
    *size = HEADER + length;
    return frame;
}

static int dial(int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM, 0), yes = 1;
    if (fd < 0 || connect(fd, (void *)&address, sizeof address))
        die("connect");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    return fd;
}

/* Say what came instead of an acknowledgement: an ErrorResponse has its reason after the header. */
static void refuse(const uint8_t *frame, size_t size)
{
    uint32_t length;
    memcpy(&length, frame + 32, 4);
    length = length < size - HEADER ? length : (uint32_t)(size - HEADER);
    fprintf(stderr, "an answer that is not an Ack: flags %#x, %.*s\n", frame[5], (int)length, (const char *)frame + HEADER);
    exit(1);
}

/* Count acknowledgements; every answer must be one, or say that the server is busy. */
static uint64_t receive(int fd, uint8_t *buffer, size_t *held)
{
    ssize_t got = recv(fd, buffer + *held, BUFFER - *held, MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno != EAGAIN))
        die("the server ended the connection");
    size_t size = *held + (got > 0 ? (size_t)got : 0), position = 0;
    uint64_t acks = 0;
    for (; size - position >= HEADER; position += HEADER)
        if (buffer[position + 5] == ACK_FLAG)
            acks++;
        else if (buffer[position + 5] != BUSY_FLAG)
            refuse(buffer + position, size - position);
    *held = size - position;
    memmove(buffer, buffer + position, *held);
    return acks;
}

int main(int count, char **arguments)
{
    if (count != 7)
        return fprintf(stderr, "usage: limit-load PORT FRAMES RECORDS VALUE_BYTES WINDOW FIRST_BATCH_ID\n"), 2;
    uint64_t frames = strtoull(arguments[2], NULL, 10), window = strtoull(arguments[5], NULL, 10);
    uint64_t id = strtoull(arguments[6], NULL, 10), sent = 0, acked = 0;
    uint32_t size;
    uint8_t *frame = make_frame((uint32_t)atoi(arguments[3]), (uint32_t)atoi(arguments[4]), &size);
    uint64_t burst = BURST / size ? BURST / size : 1;
    uint8_t *out = malloc(burst * size), *in = malloc(BUFFER);
    if (!out || !in)
        die("malloc");
    for (uint64_t i = 0; i < burst; i++)
        memcpy(out + i * size, frame, size);
    size_t held = 0, from = 0, to = 0;
    int fd = dial(atoi(arguments[1]));
    struct timespec began, ended;
    clock_gettime(CLOCK_MONOTONIC, &began);
    while (acked < frames) {
        if (from == to && sent < frames && sent - acked < window) {
            uint64_t room = window - (sent - acked), left = frames - sent;
            uint64_t next = room < left ? room : left;
            next = next < burst ? next : burst;
            for (uint64_t i = 0; i < next; i++, id++)
                memcpy(out + i * size + 12, &id, 8);
            from = 0, to = next * size, sent += next;
        }
        struct pollfd wait = {.fd = fd, .events = POLLIN | (from < to ? POLLOUT : 0)};
        if (poll(&wait, 1, 60000) <= 0)
            die("the server is silent");
        if (wait.revents & POLLOUT) {
            ssize_t put = send(fd, out + from, to - from, MSG_DONTWAIT | MSG_NOSIGNAL);
            if (put < 0 && errno != EAGAIN)
                die("send");
            from += put > 0 ? (size_t)put : 0;
        }
        if (wait.revents & (POLLIN | POLLHUP | POLLERR))
            acked += receive(fd, in, &held);
    }
    clock_gettime(CLOCK_MONOTONIC, &ended);
    printf("%.9f\n", (double)(ended.tv_sec - began.tv_sec) + 1e-9 * (double)(ended.tv_nsec - began.tv_nsec));
    return 0;
}
