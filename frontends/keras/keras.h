/* keras.h - Keras models; inside frontends/keras only. */
#ifndef FRONTENDS_KERAS_KERAS_H
#define FRONTENDS_KERAS_KERAS_H

#include "frontends/net/net.h"

#include "base/child.h"
#include "base/json.h"

/* Weights by "layer/variable", or for .weights.h5 by
 * "layers/conv2d_1/vars/0". */
typedef struct KerasWeights {
    Map *names;
    VEC(Const) value;
    const char *file; /* NULL: none */
} KerasWeights;

typedef struct Keras Keras;
struct Keras {
    Net net;
    KerasWeights weights;
    const char *prefix; /* of the model's place in a .weights.h5 */
    uint32_t depth;     /* models within models */
    bool third;         /* written by Keras 3 */
    /* A layer in the layer that is being built, whose name and weights it has.
     */
    TensorId (*inner)(Keras *k, const cJSON *layer, TensorId in);
    /* the layer that is being built */
    const cJSON *config, *call; /* call: one of its inbound nodes, or NULL */
    const char *name, *slot;    /* slot: "layers/conv2d_1" */
    uint32_t n_in, next_var;
    const TensorId *in;
};

/* hdf5.c: adds the weights in `bytes` of the file `path` (NULL: of the
 * model); with `config` also gives the JSON of the model. False after errors,
 * one of which is that this was built without libhdf5. */
bool keras_is_hdf5(Bytes bytes);
bool keras_hdf5(Keras *k, const char *path, Bytes bytes, const char **config);

/* zip.c: how many bytes so many packed ones may become. Trained weights
 * hardly shrink; a bomb does nothing else. */
uint64_t keras_most(uint64_t packed);
/* What a library may take to read so many bytes of a file. */
ChildLimits keras_limits(const char *who, Bytes bytes);
/* One file of a .keras, whole; false after errors. */
bool keras_is_zip(Bytes bytes);
bool keras_unzip(Keras *k, Bytes archive, const char *name, Bytes *out);

/* model.c: a model's nodes, reading `n` tensors (none: it has inputs of its
 * own); its first output, NO_TENSOR after errors. */
TensorId keras_model(Keras *k, const cJSON *json, uint32_t n,
                     const TensorId *in);
const cJSON *keras_get(const cJSON *json, const char *key);
/* node.c: what a config says, or else the fallback: a truth; a size from 1 to
 * 2^20 (0: it is none). */
bool keras_flag(const cJSON *config, const char *key, bool fallback);
uint32_t keras_size(const cJSON *item, uint32_t fallback);

typedef TensorId KerasBuild(Keras *k, int kind);
typedef struct KerasLayer {
    const char *name;
    KerasBuild *build;
    int kind;
} KerasLayer;
/* A variable by its name, or in newer files by its number in the layer. Call
 * for all variables of a layer, in order. NULL: seeded. */
const Const *keras_variable(Keras *k, const char *name);
/* The layer's activation; `part` NULL where the layer is nothing else. */
TensorId keras_activate(Keras *k, const char *part, TensorId in);
/* sequence.c */
KerasBuild keras_conv_row, keras_pool_row, keras_pool_all, keras_repeat,
    keras_embedding, keras_recurrent, keras_both_ways;
/* attention.c; of norms kind is 1 for those without a mean */
KerasBuild keras_layer_norm, keras_attention, keras_each_step;
/* node.c: whether an argument of the call is set. */
bool keras_told(const Keras *k, const char *argument);
/* ops.c: NULL if it is not known. */
const KerasLayer *keras_find_layer(const char *name);

#endif
