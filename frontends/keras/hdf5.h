/* hdf5.h - what is said between the reader of HDF5 and the process that
 * libhdf5 runs in; inside frontends/keras only. */
#ifndef FRONTENDS_KERAS_HDF5_H
#define FRONTENDS_KERAS_HDF5_H

#include "base/child.h"
#include "frontends/keras/keras.h"

typedef enum Hdf5Kind {
    HDF5_END,       /* all is told */
    HDF5_DAMAGED,   /* libhdf5 cannot read the file, or not to its end */
    HDF5_WRONG,     /* `name` and what is wrong with it; END follows */
    HDF5_CONFIG,    /* the JSON of the model */
    HDF5_NO_CONFIG, /* there is none; END follows */
    HDF5_VALUES,    /* a set of float32 */
    HDF5_IN_PLACE   /* one that lies in the file at byte `at` */
} Hdf5Kind;

/* Followed by name_len bytes, and unless in place by `bytes` more. */
typedef struct Hdf5Record {
    Hdf5Kind kind;
    uint32_t name_len;
    Shape shape;
    uint64_t at, bytes;
} Hdf5Record;

typedef struct Hdf5Ask {
    Bytes bytes;
    uint64_t most; /* bytes of values that it could hold */
    bool config;   /* the model's JSON, too, without which nothing is of use */
} Hdf5Ask;

/* hdf5_child.c, a module of its own: what it can do. */
typedef struct Hdf5Module {
    ChildWork *work; /* on a Hdf5Ask */
} Hdf5Module;
extern const Hdf5Module hdf5_module;

#endif
