# Exit code 3, which step, which volumes, how many bytes short, what would do.
--- run amphora compile SHARE/examples/googlenet.prototxt -t xdnn-v2-28 --set memories.am.size=1KiB
--- exit 3
--- stdout
--- stderr
SHARE/examples/googlenet.prototxt:666:1: error: does not fit: step 82 (pool_5b) needs 524,288 bytes of am, which has 1,024: 523,264 short
    layer {
    ^
SHARE/examples/googlenet.prototxt:659:1: note: i5b/out (1024x7x7): 458,752 bytes
    layer {
    ^
SHARE/examples/googlenet.prototxt:666:1: note: pool_5b@1 (1024x1x1): 65,536 bytes
    layer {
    ^
SHARE/examples/googlenet.prototxt:666:1: note: no stripe of pool_5b fits: its one row takes 524,288 bytes
    layer {
    ^
amphora: note: --set memories.am.size=512KiB would do; 524224 would not
--- run ls
--- exit 0
--- stdout
--- run amphora compile SHARE/examples/googlenet.prototxt -t xdnn-v2-28 --set memories.am.size=0
--- exit 1
--- stdout
--- stderr
--set memories.am.size=0: error: a memory of `0` bytes holds nothing
