#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <string.h>

#include "checksum.h"

#if defined(__x86_64__) && defined(__GNUC__)
__attribute__((target("sse4.2"))) static uint32_t crc_on(uint32_t begun, const uint8_t *at, size_t size)
{
    uint64_t crc = begun;
    for (; size >= 8; at += 8, size -= 8) {
        uint64_t word;
        memcpy(&word, at, sizeof word);
        crc = __builtin_ia32_crc32di(crc, word);
    }
    uint32_t rest = (uint32_t)crc;
    for (; size; at++, size--)
        rest = __builtin_ia32_crc32qi(rest, *at);
    return ~rest;
}

uint32_t crc_by_instruction(const uint8_t *at, size_t size) { return crc_on(0xFFFFFFFFu, at, size); }

/* The instruction takes three cycles, but one can start each cycle. */
__attribute__((target("sse4.2"))) void crc_in_step(const uint8_t *const at[3], const size_t size[3], uint32_t crc[3])
{
    uint64_t a = 0xFFFFFFFFu, b = a, c = a, words[3];
    size_t least = size[0] < size[1] ? size[0] : size[1];
    least = (least < size[2] ? least : size[2]) & ~(size_t)7;
    for (size_t done = 0; done < least; done += 8) {
        memcpy(&words[0], at[0] + done, 8);
        memcpy(&words[1], at[1] + done, 8);
        memcpy(&words[2], at[2] + done, 8);
        a = __builtin_ia32_crc32di(a, words[0]);
        b = __builtin_ia32_crc32di(b, words[1]);
        c = __builtin_ia32_crc32di(c, words[2]);
    }
    crc[0] = crc_on((uint32_t)a, at[0] + least, size[0] - least);
    crc[1] = crc_on((uint32_t)b, at[1] + least, size[1] - least);
    crc[2] = crc_on((uint32_t)c, at[2] + least, size[2] - least);
}

static int has_instruction(void) { return __builtin_cpu_supports("sse4.2"); }
#else
uint32_t crc_by_instruction(const uint8_t *at, size_t size) { return (void)at, (void)size, 0; }

void crc_in_step(const uint8_t *const at[3], const size_t size[3], uint32_t crc[3])
{
    (void)at, (void)size, (void)crc;
}

static int has_instruction(void) { return 0; }
#endif

int crc_instruction;

void learn_crc_instruction(void) { crc_instruction = has_instruction(); }

#define POLYNOMIAL 0x82F63B78u /* of CRC-32C, its bits reversed as those of all numbers here */

/* Multiply two polynomials over GF(2), modulo that of the checksum. */
static uint32_t multiply(uint32_t a, uint32_t b)
{
    uint32_t product = 0;
    for (uint32_t bit = 1u << 31; a; bit >>= 1) {
        if (a & bit) {
            product ^= b;
            a ^= bit;
        }
        b = b & 1 ? b >> 1 ^ POLYNOMIAL : b >> 1;
    }
    return product;
}

/* Return what a checksum is multiplied with when `size` bytes follow: x to the power of their bits. */
static uint32_t shift_by(uint64_t size)
{
    static uint64_t last_size; /* batches are often of one size; the interpreter's lock is held */
    static uint32_t last;
    if (last && size == last_size)
        return last;
    uint32_t shift = 1u << 31, power = 1u << 23; /* x^0 and x^8 */
    for (uint64_t left = size; left; left >>= 1, power = multiply(power, power))
        if (left & 1)
            shift = multiply(shift, power);
    last_size = size;
    return last = shift;
}

uint32_t crc_of_both(uint32_t first, uint32_t second, uint64_t size)
{
    return multiply(shift_by(size), first) ^ second;
}

int crc_by_call(PyObject *function, PyObject *view, Py_ssize_t from, Py_ssize_t to, uint32_t *crc)
{
    PyObject *part = PySequence_GetSlice(view, from, to);
    if (part == NULL)
        return -1;
    PyObject *value = PyObject_CallOneArg(function, part);
    Py_DECREF(part);
    if (value == NULL)
        return -1;
    unsigned long number = PyLong_AsUnsignedLong(value);
    Py_DECREF(value);
    if (number == (unsigned long)-1 && PyErr_Occurred())
        return -1;
    *crc = (uint32_t)number;
    return 0;
}
