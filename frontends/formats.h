/* formats.h - the functions behind the rows of frontends.c, one pair a format;
 * no other room includes it. */
#ifndef FRONTENDS_FORMATS_H
#define FRONTENDS_FORMATS_H

#include "frontends/frontend.h"

/* caffe/reader.c */
bool caffe_looks(const char *path, Bytes bytes);
Graph *caffe_read(Arena *arena, Diag *diag, const char *path, Bytes bytes,
                  const ImportOptions *options);

/* onnx/reader.c */
bool onnx_looks(const char *path, Bytes bytes);
Graph *onnx_read(Arena *arena, Diag *diag, const char *path, Bytes bytes,
                 const ImportOptions *options);

/* text/reader.c */
bool graphtext_looks(const char *path, Bytes bytes);
Graph *graphtext_read(Arena *arena, Diag *diag, const char *path, Bytes bytes,
                      const ImportOptions *options);

/* json/reader.c */
bool graphjson_looks(const char *path, Bytes bytes);
Graph *graphjson_read(Arena *arena, Diag *diag, const char *path, Bytes bytes,
                      const ImportOptions *options);

/* mxnet/reader.c */
bool mxnet_looks(const char *path, Bytes bytes);
Graph *mxnet_read(Arena *arena, Diag *diag, const char *path, Bytes bytes,
                  const ImportOptions *options);

/* darknet/reader.c */
bool darknet_looks(const char *path, Bytes bytes);
Graph *darknet_read(Arena *arena, Diag *diag, const char *path, Bytes bytes,
                    const ImportOptions *options);

/* tflite/reader.c */
bool tflite_looks(const char *path, Bytes bytes);
Graph *tflite_read(Arena *arena, Diag *diag, const char *path, Bytes bytes,
                   const ImportOptions *options);

/* tensorflow/reader.c */
bool tensorflow_looks(const char *path, Bytes bytes);
Graph *tensorflow_read(Arena *arena, Diag *diag, const char *path, Bytes bytes,
                       const ImportOptions *options);

/* keras/reader.c */
bool keras_looks(const char *path, Bytes bytes);
Graph *keras_read(Arena *arena, Diag *diag, const char *path, Bytes bytes,
                  const ImportOptions *options);

#endif
