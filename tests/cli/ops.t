# Operations of layers in the JSON form, two a product: 2 x kernel x channels
# that are read for a result x channels x pixels of the output, or of the input
# where the convolution is transposed.
#   full       2 x 3 x 3 x 8 x 16 x 6 x 4
#   depthwise  2 x 3 x 3 x 1 x 16 x 6 x 4
#   strided    2 x 3 x 1 x 16 x 12 x 3 x 2
#   up         2 x 2 x 2 x 12 x 4 x 3 x 2
--- file net.prototxt
name: "ops"
input: "data"
input_shape { dim: 1 dim: 8 dim: 6 dim: 4 }
layer { name: "full" type: "Convolution" bottom: "data" top: "full"
  convolution_param { num_output: 16 kernel_size: 3 pad: 1 } }
layer { name: "depthwise" type: "Convolution" bottom: "full" top: "depthwise"
  convolution_param { num_output: 16 kernel_size: 3 pad: 1 group: 16 } }
layer { name: "strided" type: "Convolution" bottom: "depthwise" top: "strided"
  convolution_param { num_output: 12 kernel_h: 3 kernel_w: 1 stride: 2
    pad_h: 1 pad_w: 0 } }
layer { name: "up" type: "Deconvolution" bottom: "strided" top: "up"
  convolution_param { num_output: 4 kernel_size: 2 stride: 2 } }
--- run amphora compile net.prototxt -t xdnn-v2-28 -o out > /dev/null; python3 -c 'import json; print(*[l["name"] + " " + str(l["ops"]) for l in json.load(open("out/net.json"))["network"][1:5]], sep="\n")'
--- exit 0
--- stdout
full 55296
depthwise 6912
strided 6912
up 2304
--- stderr
