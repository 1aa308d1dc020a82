# Mistakes in a network: all at once, each at its place.
--- file unclosed.prototxt
name: "x"
layer { name: "a" type: "Input" top: "a"
  input_param { shape { dim: 1 dim: 3 dim: 8 dim: 8 } }
--- file unknown.prototxt
input: "a"
input_dim: 1 input_dim: 3 input_dim: 8 input_dim: 8
layer { name: "c1" type: "Foo" bottom: "a" top: "b" }
layer { name: "c2" type: "Bar" bottom: "b" top: "c" }
--- file cycle.prototxt
input: "a"
input_dim: 1 input_dim: 3 input_dim: 8 input_dim: 8
layer { name: "e1" type: "Eltwise" bottom: "a" bottom: "y" top: "x" }
layer { name: "e2" type: "ReLU" bottom: "x" top: "y" }
--- file shapes.prototxt
input: "a"
input_dim: 1 input_dim: 3 input_dim: 8 input_dim: 8
layer { name: "c" type: "Convolution" bottom: "a" top: "b"
  convolution_param { num_output: 4 kernel_size: 3 } }
layer { name: "e" type: "Eltwise" bottom: "a" bottom: "b" top: "x" }
--- run amphora show unclosed.prototxt
--- exit 1
--- stdout
--- stderr
unclosed.prototxt:2:7: error: this '{' is never closed
    layer { name: "a" type: "Input" top: "a"
          ^
--- run amphora show unknown.prototxt
--- exit 1
--- stdout
--- stderr
unknown.prototxt:3:26: error: layer "c1": type "Foo" is not supported
    layer { name: "c1" type: "Foo" bottom: "a" top: "b" }
                             ^
unknown.prototxt:4:26: error: layer "c2": type "Bar" is not supported
    layer { name: "c2" type: "Bar" bottom: "b" top: "c" }
                             ^
--- run amphora show cycle.prototxt
--- exit 1
--- stdout
--- stderr
cycle.prototxt:3:1: error: layers form a cycle: "e1" reads from "e2" reads from "e1"
    layer { name: "e1" type: "Eltwise" bottom: "a" bottom: "y" top: "x" }
    ^
--- run amphora show shapes.prototxt
--- exit 1
--- stdout
--- stderr
shapes.prototxt:5:1: error: layer "e": inputs from layer "a" (1x3x8x8) and layer "c" (1x4x6x6) have different shapes
    layer { name: "e" type: "Eltwise" bottom: "a" bottom: "b" top: "x" }
    ^
