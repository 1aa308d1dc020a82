# Files that cannot be read or written; nothing half written stays behind.
--- run amphora show .
--- exit 1
--- stdout
--- stderr
.: error: cannot read: Is a directory
--- run amphora show nothing.prototxt
--- exit 1
--- stdout
--- stderr
nothing.prototxt: error: cannot open: No such file or directory
--- run amphora show SHARE/examples/tiny.prototxt > /dev/full
--- exit 1
--- stderr
amphora: error: cannot write to stdout: No space left on device
--- run ulimit -f 8; amphora compile SHARE/examples/googlenet.prototxt -t xdnn-v3-96 -o out
--- exit 1
--- stdout
--- run ls out
--- exit 0
--- stdout
--- run amphora
--- exit 2
--- run amphora compile
--- exit 2
--- stdout
--- stderr
amphora: error: compile: missing NET
amphora: note: amphora compile --help lists the options
--- run amphora compile a b
--- exit 2
--- stdout
--- stderr
amphora: error: compile: unexpected argument b
amphora: note: amphora compile --help lists the options
--- run amphora verify x --tolerance zero
--- exit 2
--- stdout
--- stderr
amphora: error: verify: --tolerance takes X, not zero
amphora: note: amphora verify --help lists the options
--- run amphora compile SHARE/examples/tiny.prototxt -t k210 -o real 2>&1 | tail -n 1
--- exit 0
--- stdout
amphora: note: amphora quantise SHARE/examples/tiny.prototxt --calibrate DIR -t k210 makes a network of codes
--- stderr
