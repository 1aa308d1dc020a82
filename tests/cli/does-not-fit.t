# Exit code 3, which step, which volumes, how many bytes short, what would do.
--- run amphora compile SHARE/examples/googlenet.prototxt -t xdnn-v2-28 --set memories.am.size=1KiB
--- exit 3
--- stdout
--- stderr
SHARE/examples/googlenet.prototxt:13:1: error: does not fit: step 1 (stem/7x7) needs 30,720 bytes of am, which has 1,024: 29,696 short
    layer {
    ^
SHARE/examples/googlenet.prototxt:13:1: note: stem/7x7 (64x112x112, a plank of it): 16,384 bytes
    layer {
    ^
SHARE/examples/googlenet.prototxt:6:1: note: image (3x224x224, a plank of it): 14,336 bytes
    layer {
    ^
amphora: note: --set memories.am.size=513KiB would do
--- run ls
--- exit 0
--- stdout
--- run amphora compile SHARE/examples/googlenet.prototxt -t xdnn-v2-28 --set memories.am.size=0
--- exit 1
--- stdout
--- stderr
--set memories.am.size=0: error: a memory of `0` bytes holds nothing
