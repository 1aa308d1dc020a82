/* keras.h - Keras models; inside frontends/keras*.c only. */
#ifndef FRONTENDS_KERAS_H
#define FRONTENDS_KERAS_H

#include "frontends/netbuild.h"

#include "base/json.h"

/* Weights by "layer/variable", or for .weights.h5 by
 * "layers/conv2d_1/vars/0". */
typedef struct KerasWeights {
    Map *names;
    VEC(Const) value;
    const char *file; /* NULL: none */
} KerasWeights;

typedef struct Keras {
    Net net;
    KerasWeights weights;
    const char *prefix; /* of the model's place in a .weights.h5 */
    uint32_t depth;     /* models within models */
    bool third;         /* written by Keras 3 */
    /* the layer that is being built */
    const cJSON *config;
    const char *name, *slot; /* slot: "layers/conv2d_1" */
    uint32_t n_in, next_var;
    const TensorId *in;
} Keras;

/* keras_hdf5.c: without libhdf5 both are an error that says so. */
bool keras_is_hdf5(Bytes bytes);
bool keras_hdf5_weights(Keras *k, const char *path, Bytes bytes);
/* The JSON of the model; NULL after errors. */
const char *keras_hdf5_config(Keras *k, const char *path, Bytes bytes);

/* keras_zip.c: whether so many packed bytes may become `bytes`. Trained weights
 * hardly shrink; a bomb does nothing else. */
bool keras_can_hold(uint64_t packed, uint64_t bytes);
/* One file of a .keras, whole; false after errors. */
bool keras_is_zip(Bytes bytes);
bool keras_unzip(Keras *k, Bytes archive, const char *name, Bytes *out);

typedef TensorId KerasBuild(Keras *k, int kind);
typedef struct KerasLayer {
    const char *name;
    KerasBuild *build;
    int kind;
} KerasLayer;
/* keras_layers.c: NULL if it is not known. */
const KerasLayer *keras_find_layer(const char *name);

#endif
