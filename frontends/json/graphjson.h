/* graphjson.h - what the writer and the reader of graphs in JSON agree on;
 * the form is described in docs/graph-json.md. */
#ifndef FRONTENDS_JSON_GRAPHJSON_H
#define FRONTENDS_JSON_GRAPHJSON_H

/* The value of "amphora": a file of another version is refused. */
enum { GRAPHJSON_VERSION = 1 };

/* Values begin at multiples of this in the file of weights. */
enum { GRAPHJSON_ALIGN = 64 };

#endif
