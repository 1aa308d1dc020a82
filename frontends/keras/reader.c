/* reader.c - networks from Keras: JSON of version 2 and 3, .h5, .keras, tfjs.
 *
 * In: the model, and weights from the file itself, from --weights, or from
 * tfjs' files beside it. Out: the graph, channels before height and width.
 */
#include "base/jsonlook.h"
#include "frontends/formats.h"
#include "frontends/keras/keras.h"
#include "frontends/tensorflow/tf.h"

#include <string.h>

static bool mentions(Bytes text, const char *word) {
    size_t len = strlen(word);
    for (size_t i = 0; i + len <= text.len; i++)
        if (text.at[i] == (uint8_t)*word && !memcmp(text.at + i, word, len))
            return true;
    return false;
}

/* tfjs' weights are named and stored as those of its graphs. */
static void read_tfjs(Keras *k, const cJSON *json) {
    Tf tf = {.net = k->net, .weights = k->weights.names};
    if (!keras_get(json, "weightsManifest"))
        return;
    tf_read_manifest(&tf, json);
    for (uint32_t i = 0; i < tf.weight.n; i++)
        vec_push(k->net.arena, &k->weights.value, tf.weight.at[i]);
    k->weights.file = k->net.path;
}

static bool build_json(Keras *k, Bytes text) {
    Diag *diag = k->net.diag;
    cJSON *json =
        json_parse(diag, k->net.path, (const char *)text.at, text.len);
    if (!json)
        return false;
    const cJSON *topology = keras_get(json, "modelTopology");
    const cJSON *model = topology ? topology : json;
    if (keras_get(model, "model_config"))
        model = keras_get(model, "model_config");
    read_tfjs(k, json);
    k->net.nhwc = !mentions(text, "\"channels_first\"");
    k->third = mentions(text, "\"registered_name\"");
    keras_model(k, model, 0, NULL);
    json_free(json);
    if (!k->net.g->output.n && !diag_errors(diag))
        diag_error(diag, (Loc){k->net.path, 0, 0}, "the model has no output");
    return !diag_errors(diag);
}

static bool build_hdf5(Keras *k, Bytes bytes) {
    const char *config;
    return keras_hdf5(k, NULL, bytes, &config) &&
           build_json(k, (Bytes){(const uint8_t *)config, strlen(config)});
}

static bool build_zip(Keras *k, Bytes bytes) {
    Bytes config, weights;
    return keras_unzip(k, bytes, "config.json", &config) &&
           keras_unzip(k, bytes, "model.weights.h5", &weights) &&
           keras_hdf5(k, NULL, weights, NULL) && build_json(k, config);
}

static bool other_weights(Keras *k) {
    const char *path = k->net.options->weights;
    Bytes bytes, inner;
    if (!path)
        return true;
    if (!file_read(k->net.arena, k->net.diag, path, &bytes))
        return false;
    if (!keras_is_zip(bytes))
        return keras_hdf5(k, path, bytes, NULL);
    return keras_unzip(k, bytes, "model.weights.h5", &inner) &&
           keras_hdf5(k, NULL, inner, NULL);
}

bool keras_looks(const char *path, Bytes bytes) {
    (void)path;
    return keras_is_hdf5(bytes) || keras_is_zip(bytes) ||
           json_has_inner_key(bytes, "modelTopology", "model_config") ||
           json_has_inner_key(bytes, "modelTopology", "class_name") ||
           (json_has_key(bytes, "class_name") && json_has_key(bytes, "config"));
}

Graph *keras_read(Arena *arena, Diag *diag, const char *path, Bytes bytes,
                  const ImportOptions *options) {
    Keras k = {.net = net_open(arena, diag, path, options, true),
               .weights = {.names = map_new(arena)},
               .prefix = ""};
    bool good = keras_is_hdf5(bytes)  ? build_hdf5(&k, bytes)
                : keras_is_zip(bytes) ? build_zip(&k, bytes)
                : other_weights(&k)   ? build_json(&k, bytes)
                                      : false;
    return good ? k.net.g : NULL;
}
