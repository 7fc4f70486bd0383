/* Buffers, and memory that the process keeps. */
#ifndef LANCE_NATIVE_MEMORY_H
#define LANCE_NATIVE_MEMORY_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

extern PyMethodDef memory_methods[];

#endif
