/* amphora.h - the compiler as a library: -lamphora.
 *
 * A session holds messages; a plan is a network that was compiled for a
 * machine, and holds all that belongs to it. Nothing is global: sessions in
 * several threads do not know of each other. Strings and arrays that functions
 * return live as long as what they were asked of. What fails returns NULL or -1
 * and leaves messages.
 *
 *     amphora_session *s = amphora_session_new();
 *     const char *set[] = {"memories.am.size=2MiB", NULL};
 *     amphora_options o = {.settings = set};
 *     amphora_plan *p = amphora_compile(s, "net.onnx", "xdnn-v2-28", &o);
 *     if (p)
 *         puts(amphora_listing_text(p));
 *     for (int i = 0; i < amphora_message_count(s); i++)
 *         puts(amphora_message_at(s, i).text);
 *     amphora_plan_free(p);
 *     amphora_session_free(s);
 */
#ifndef AMPHORA_H
#define AMPHORA_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define AMPHORA_API __attribute__((visibility("default")))
#else
#define AMPHORA_API
#endif

/* Grows when what is here changes its meaning; new functions do not count. */
#define AMPHORA_API_VERSION 2

/* Of a struct the size, so that a newer library knows an older caller's. */
typedef struct amphora_session amphora_session;
typedef struct amphora_plan amphora_plan;

typedef enum amphora_kind {
    AMPHORA_ERROR,
    AMPHORA_WARNING,
    AMPHORA_NOTE
} amphora_kind;

typedef struct amphora_message {
    amphora_kind kind;
    const char *file;      /* NULL: about none */
    uint32_t line, column; /* from 1; line 0: column is a byte of the file */
    const char *text;
} amphora_message;

/* What is 0 or NULL is the default of `amphora compile`. */
typedef struct amphora_options {
    const char *const *settings; /* PATH=VALUE, NULL at the end: --set */
    const char *weights;         /* file of trained weights */
    const char *objective;       /* balanced, time, bytes */
    const char *order, *planner, *replication, *mode;
    uint64_t seed, batch, images;
    int effort; /* 1 + that of --effort; 0: the default */
    double recompute; /* products, as times those of the network: --recompute */
} amphora_options;

/* "amphora 0.1.0 (revision ..., LLVM ...)" */
AMPHORA_API const char *amphora_version(void);
AMPHORA_API int amphora_api_version(void);

AMPHORA_API amphora_session *amphora_session_new(void);
AMPHORA_API void amphora_session_free(amphora_session *session);
/* Of all calls since the session began, or since the last clear. */
AMPHORA_API int amphora_message_count(const amphora_session *session);
AMPHORA_API amphora_message amphora_message_at(const amphora_session *session,
                                               int i);
AMPHORA_API void amphora_messages_clear(amphora_session *session);

/* Called by amphora_compile, in its thread, before, while and after a plan is
 * searched: how far the search is, 0 to 1, and the cycles of the best plan so
 * far (0: none fits yet, or nobody counts). A result other than 0 ends it: amphora_compile
 * then returns NULL, with a message. The library calls nothing else of the
 * program's. */
typedef int amphora_watch(void *context, double share, uint64_t cycles);
/* For all later calls of the session; NULL: nobody is told. */
AMPHORA_API void amphora_session_watch(amphora_session *session,
                                       amphora_watch *watch, void *context);

/* `machine`: a shipped target, or the path of a hwspec. `options` may be NULL.
 */
AMPHORA_API amphora_plan *amphora_compile(amphora_session *session,
                                          const char *network,
                                          const char *machine,
                                          const amphora_options *options);
AMPHORA_API void amphora_plan_free(amphora_plan *plan);

/* A volume, or some of it, where it lies from one step to another. */
typedef struct amphora_volume {
    const char *tensor, *memory;
    uint64_t offset, bytes; /* of the volume that encloses it, in the memory */
    uint32_t channels, rows, columns;
    uint32_t first_step, end_step; /* half open, from 0 */
} amphora_volume;
AMPHORA_API int amphora_volume_count(const amphora_plan *plan);
AMPHORA_API amphora_volume amphora_volume_at(const amphora_plan *plan, int i);

/* JSON: what `compile --json` says of memory, bytes, cost and order. */
AMPHORA_API const char *amphora_plan_json(amphora_plan *plan);
/* docs/listing.md */
AMPHORA_API const char *amphora_listing_text(amphora_plan *plan);
AMPHORA_API const char *amphora_listing_json(amphora_plan *plan);
/* NET.cmd, NET.json and what belongs to them, into a folder; 0 if written. */
AMPHORA_API int amphora_listing_write(amphora_session *session,
                                      amphora_plan *plan, const char *folder);
/* What lies where in active memory: SVG. */
AMPHORA_API const char *amphora_plan_svg(amphora_plan *plan);

/* Runs the listing. inputs: one array of floats (or codes) for each input of
 * the network, or NULL for seeded ones. JSON as `simulate --json` prints it,
 * and the values of the outputs. */
AMPHORA_API const char *amphora_simulate(amphora_session *session,
                                         amphora_plan *plan,
                                         const float *const *inputs,
                                         int n_inputs);
typedef struct amphora_tensor {
    const char *name;
    int rank;
    uint32_t dim[8];
    const float *value; /* of inputs NULL */
} amphora_tensor;
AMPHORA_API int amphora_input_count(const amphora_plan *plan);
AMPHORA_API amphora_tensor amphora_input_at(const amphora_plan *plan, int i);
/* Of the last amphora_simulate. */
AMPHORA_API int amphora_output_count(const amphora_plan *plan);
AMPHORA_API amphora_tensor amphora_output_at(const amphora_plan *plan, int i);

/* Compares the listing, as simulated, with the network: 1 right, 0 wrong, -1 it
 * could not be run. */
AMPHORA_API int amphora_verify(amphora_session *session, amphora_plan *plan);

/* Any command of `amphora`, by its arguments: {"explore", "net.onnx", "-t",
 * "./mine.yaml", ..., NULL}. Prints nothing; the result is the JSON that the
 * command prints with --json, also where it fails, and belongs to the session.
 * NULL: the command has none. exit_code: as the program's; it may be NULL. */
AMPHORA_API const char *amphora_run(amphora_session *session,
                                    const char *const *arguments,
                                    int *exit_code);

/* What a command says to people, n bytes of it; not 0: it could not be written,
 * for the reason in errno. n 0: that was all, write what was kept. */
typedef enum amphora_stream { AMPHORA_OUT = 1, AMPHORA_ERR = 2 } amphora_stream;
typedef int amphora_write(void *context, amphora_stream stream,
                          const char *text, size_t n);

/* The command line, with the program's name in front as main() has it: all that
 * the program `amphora` does. What the program prints goes to `write`; the
 * result is the program's exit code. */
AMPHORA_API int amphora_command(amphora_session *session, int argc,
                                const char *const *argv, amphora_write *write,
                                void *context);

#ifdef __cplusplus
}
#endif

#endif
