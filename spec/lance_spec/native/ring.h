/* Frames of a store-and-forward segment: CRC-32C u32, length u32, payload. */
#ifndef LANCE_NATIVE_RING_H
#define LANCE_NATIVE_RING_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

extern PyMethodDef ring_methods[];

#endif
