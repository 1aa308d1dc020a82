/* main.c - the program: a client of libamphora, and what only a whole process
 * may set or print to. It is linked with the library's exported functions
 * alone. */
#include <amphora/amphora.h>

#include <signal.h>
#include <stdio.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

/* Plans are made by the dozen, each in an arena of its own: the C library gives
 * the memory of one to the next, and does not return it in between. */
static void keep_memory(void) {
#ifdef __GLIBC__
    enum { LARGEST_KEPT = 1 << 25, MOST_SPARE = 1 << 30 };
    mallopt(M_MMAP_THRESHOLD, LARGEST_KEPT);
    mallopt(M_TRIM_THRESHOLD, MOST_SPARE);
#endif
}

static int print(void *context, amphora_stream stream, const char *text,
                 size_t n) {
    (void)context;
    FILE *to = stream == AMPHORA_OUT ? stdout : stderr;
    return n ? fwrite(text, 1, n, to) < n : fflush(to) != 0;
}

int main(int argc, char **argv) {
    keep_memory();
    /* A file size limit is then an error of write(), which is reported and
     * cleaned up after. */
    signal(SIGXFSZ, SIG_IGN);
    amphora_session *session = amphora_session_new();
    if (!session)
        return 1;
    int code =
        amphora_command(session, argc, (const char *const *)argv, print, NULL);
    amphora_session_free(session);
    return code;
}
