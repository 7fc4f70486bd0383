/* The loops that cost most in Python: over records, ring frames, LWP frames, runs of
 * batches and Fluvio's records.
 *
 * Each function only ever goes as far as everything is in order and says where it stopped; what
 * stands there is judged by the Python code of the same name, so that there is one place that words
 * errors and one that decides. Both must agree on what is in order, which the tests hold them to.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "batch.h"
#include "checksum.h"
#include "fetch.h"
#include "fluvio.h"
#include "frames.h"
#include "memory.h"
#include "records.h"
#include "ring.h"
#include "runs.h"
#include "writes.h"

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    "_accelerator",
    "Loops over records and frames, compiled.",
    -1,
    NULL,
    NULL,
    NULL,
    NULL,
    NULL,
};

static int add_types(PyObject *module)
{
    PyTypeObject *const types[] = {&frame_fields_type, &batcher_fields_type, &handle_fields_type};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (PyModule_AddType(module, types[i]) < 0)
            return -1;
    return 0;
}

PyMODINIT_FUNC PyInit__accelerator(void)
{
    PyMethodDef *const parts[] = {
        record_methods, ring_methods, frame_methods, run_methods, fetch_methods, batch_methods, memory_methods,
        fluvio_methods, write_methods,
    };
    learn_crc_instruction();
    if (make_record_types() < 0)
        return NULL;
    PyObject *module = PyModule_Create(&definition);
    for (size_t i = 0; module != NULL && i < sizeof parts / sizeof *parts; i++)
        if (PyModule_AddFunctions(module, parts[i]) < 0)
            Py_CLEAR(module);
    if (module != NULL && add_types(module) < 0)
        Py_CLEAR(module);
    return module;
}
