/* call.c - see call.h. */
#define _GNU_SOURCE /* fopencookie */
#include "driver/call.h"

#include <errno.h>
#include <string.h>
#include <sys/types.h>

static ssize_t pass_on(void *cookie, const char *text, size_t n) {
    Sink *sink = cookie;
    if (!sink->write || !n ||
        !sink->write(sink->context, sink->stream, text, n))
        return (ssize_t)n;
    if (!sink->error)
        sink->error = errno ? errno : EIO;
    return 0;
}

bool sink_open(Sink *sink, amphora_stream stream, amphora_write *write,
               void *context) {
    *sink = (Sink){write, context, stream, 0, NULL};
    sink->file =
        fopencookie(sink, "w", (cookie_io_functions_t){.write = pass_on});
    if (!sink->file)
        return false;
    setvbuf(sink->file, NULL, stream == AMPHORA_ERR ? _IONBF : _IOLBF, BUFSIZ);
    return true;
}

void sink_close(Sink *sink) {
    if (sink->file)
        fclose(sink->file);
    sink->file = NULL;
}

bool sink_flush(Sink *sink) {
    bool good = !fflush(sink->file) && !ferror(sink->file);
    errno = 0;
    if (good && sink->write &&
        sink->write(sink->context, sink->stream, "", 0) && !sink->error)
        sink->error = errno ? errno : EIO;
    return good && !sink->error;
}

/* Nothing but the guard lives here: it may come back to this place. */
GuardReason call_guarded(CallWork *work, void *task, Sink *out, Sink *err,
                         char said[CALL_SAID]) {
    Guard guard = {.poll = NULL};
    guard_open(&guard);
    guard.out = out ? out->file : guard.out;
    guard.err = err ? err->file : guard.err;
    if (guard_begins(&guard))
        work(task);
    guard_exit(&guard);
    memcpy(said, guard.said, CALL_SAID);
    return guard.reason;
}
