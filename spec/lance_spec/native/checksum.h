/* CRC-32C: with the processor's own instruction, or by the Python function that a caller passes. */
#ifndef LANCE_NATIVE_CHECKSUM_H
#define LANCE_NATIVE_CHECKSUM_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

#define SMALL 2048 /* up to so many bytes the processor's own instruction beats a call */

/* Whether the processor has the instruction; set once, when the module is loaded. */
extern int crc_instruction;

void learn_crc_instruction(void);

/* Return the checksum of some bytes; only where `crc_instruction` is set. */
uint32_t crc_by_instruction(const uint8_t *at, size_t size);

/* Compute the checksums of three buffers in step; only where `crc_instruction` is set. */
void crc_in_step(const uint8_t *const at[3], const size_t size[3], uint32_t crc[3]);

/* Return the checksum of some bytes and `size` more after them, from the checksums of both. */
uint32_t crc_of_both(uint32_t first, uint32_t second, uint64_t size);

/* Compute a checksum with a Python function over part of a buffer; -1 with an error set. */
int crc_by_call(PyObject *function, PyObject *view, Py_ssize_t from, Py_ssize_t to, uint32_t *crc);

#endif
