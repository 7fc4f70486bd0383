/* Little-endian numbers in memory. */
#ifndef LANCE_NATIVE_BYTES_H
#define LANCE_NATIVE_BYTES_H

#include <stdint.h>

static inline uint16_t load16(const uint8_t *at) { return (uint16_t)(at[0] | at[1] << 8); }

static inline uint32_t load32(const uint8_t *at)
{
    return (uint32_t)load16(at) | (uint32_t)load16(at + 2) << 16;
}

static inline uint64_t load64(const uint8_t *at) { return load32(at) | (uint64_t)load32(at + 4) << 32; }

static inline void store32(uint8_t *at, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        at[i] = (uint8_t)(value >> 8 * i);
}

static inline void store64(uint8_t *at, uint64_t value)
{
    store32(at, (uint32_t)value);
    store32(at + 4, (uint32_t)(value >> 32));
}

#endif
