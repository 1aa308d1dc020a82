# Exit code 3, which step, which volumes, how many bytes short, what would do.
--- run amphora compile SHARE/examples/googlenet.prototxt -t xdnn-v2-28 --set memories.am.size=1KiB
--- exit 3
--- stdout
--- stderr
SHARE/examples/googlenet.prototxt:527:1: error: does not fit: step 65 (pool_4e) needs 212,992 bytes of am, which has 1,024: 211,968 short
    layer {
    ^
SHARE/examples/googlenet.prototxt:522:1: note: i4e/out (832x14x14, 3 of its rows): 159,744 bytes
    layer {
    ^
SHARE/examples/googlenet.prototxt:527:1: note: pool_4e (832x7x7, 1 of its rows): 53,248 bytes
    layer {
    ^
SHARE/examples/googlenet.prototxt:527:1: note: no stripe of pool_4e fits: the lowest, 1 of its 7 rows, takes 212,992 bytes
    layer {
    ^
amphora: note: --set memories.am.size=208KiB would do; 212928 would not
--- run ls
--- exit 0
--- stdout
--- run amphora compile SHARE/examples/googlenet.prototxt -t xdnn-v2-28 --set memories.am.size=0
--- exit 1
--- stdout
--- stderr
--set memories.am.size=0: error: a memory of `0` bytes holds nothing
