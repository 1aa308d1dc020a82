# --json: one object on stdout, whatever happens.
--- file bad.prototxt
layer { name: "c1" type: "Foo" bottom: "a" top: "b" }
--- run amphora verify bad.prototxt -t xdnn-v2-28 --json
--- exit 1
--- stdout
{"ok":false,"exit":1,"messages":[{"kind":"error","file":"bad.prototxt","line":1,"column":26,"text":"layer \"c1\": type \"Foo\" is not supported"},{"kind":"error","file":"bad.prototxt","line":1,"column":32,"text":"layer \"c1\": reads blob \"a\", which no layer makes"}]}
--- run amphora compile SHARE/examples/tiny.prototxt -t xdnn-v2-28 --set memories.am.size=1KiB --json
--- exit 3
--- stdout
{"ok":false,"exit":3,"messages":[{"kind":"error","file":"SHARE/examples/tiny.prototxt","line":91,"column":1,"text":"does not fit: step 6 (mix) needs 8,192 bytes of am, which has 1,024: 7,168 short"},{"kind":"note","file":"SHARE/examples/tiny.prototxt","line":82,"column":1,"text":"both (32x8x8, 3 of its rows): 6,144 bytes"},{"kind":"note","file":"SHARE/examples/tiny.prototxt","line":91,"column":1,"text":"mix (32x8x8, 1 of its rows): 2,048 bytes"},{"kind":"note","file":"SHARE/examples/tiny.prototxt","line":91,"column":1,"text":"no stripe of mix fits: the lowest, 1 of its 8 rows, takes 8,192 bytes"},{"kind":"note","text":"--set memories.am.size=8192 would do; 8128 would not"}]}
--- run amphora verify SHARE/examples/tiny.prototxt -t xdnn-v2-28 --tolerance 0 --json | python3 -c 'import json, sys; j = json.load(sys.stdin); print(j["ok"], j["violations"])'
--- exit 0
--- stdout
False 0
--- stderr
--- run for m in template k210 max78000 gemmini-16; do amphora check $m --json | python3 -c 'import json, sys; j = json.load(sys.stdin); print(j["machine"], j["compiles"])'; done
--- exit 0
--- stdout
acme-slice listing
k210 file
max78000 description
gemmini-16 words
--- stderr
--- run printf 'name: "part" input: "x" input_dim: [1, 64, 8, 8] layer { name: "cut" type: "Slice" bottom: "x" top: "a" top: "b" slice_param { axis: 2 slice_point: 2 } } layer { name: "conv" type: "Convolution" bottom: "a" top: "conv" convolution_param { num_output: 8 kernel_size: 1 } }' > part.prototxt; amphora verify part.prototxt --outputs conv -t vision-npu | grep -o 'compulsory .*'; amphora verify part.prototxt --outputs conv -t vision-npu --json | grep -o '"ddr_compulsory_bytes":[0-9]*'; amphora compile part.prototxt --outputs conv -t vision-npu -o list | grep -o 'compulsory [0-9,]*[0-9]'; amphora explore part.prototxt --outputs conv -t vision-npu -o points > log; cut -d, -f 10 points/points.csv
--- exit 0
--- stdout
compulsory 1,152
"ddr_compulsory_bytes":1152
compulsory 1,152
ddr_compulsory_bytes
1152
--- stderr
