/* LWP frames (LWP section 3.1), and the Python class of their instances. */
#ifndef LANCE_NATIVE_FRAMES_H
#define LANCE_NATIVE_FRAMES_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#define FRAME_HEADER 44
#define FRAME_PREFIX 12

enum { KIND, FLAGS, BATCH_ID, TIMESTAMP, COUNT, TOPIC, PAYLOAD, CRC, FIELDS };

/* Where the slots of the frame class are: its instances are filled without running __init__. */
typedef struct {
    PyTypeObject *type;
    Py_ssize_t offsets[FIELDS];
} FrameShape;

extern FrameShape frame_shape;

extern PyMethodDef frame_methods[];

/* Find where the slots of a frame class are; -1 with an error set. */
int learn_frame_shape(PyTypeObject *type);

#endif
