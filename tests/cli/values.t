# Values of others: --input and --expect of an ONNX model, outputs as .npy.
--- run printf '\223NUMPY\001\000\166\000%-117s\n' "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 8), }" > x.npy; cp x.npy short.npy; head -c 96 /dev/zero >> x.npy; amphora eval SHARE/tests/truth/onnx-products.onnx --input x.npy -o out > log; ls out
--- exit 0
--- stdout
Gemm_0_0.npy
Gemm_1_0.npy
Gemm_2_0.npy
MatMul_3_0.npy
MatMul_5_0.npy
--- stderr
--- run amphora compile SHARE/tests/truth/onnx-products.onnx -t xdnn-v3-96 -o list > log; amphora simulate list/onnx-products.cmd -t xdnn-v3-96 --input x.npy -o sim > log; for f in out/*; do cmp $f sim/${f#out/}; done
--- exit 0
--- stdout
--- stderr
--- run amphora verify SHARE/tests/truth/onnx-products.onnx -t xdnn-v3-96 --input x.npy $(printf -- '--expect %s ' out/*) | grep expect
--- exit 0
--- stdout
expect  reference: 5 outputs, largest relative error 0
expect  listing: 5 outputs, largest relative error 0
--- stderr
--- run amphora eval SHARE/tests/truth/onnx-products.onnx --input short.npy
--- exit 1
--- stdout
--- stderr
short.npy: error: not a .npy file that can be read: its shape does not go with its length
--- run amphora eval SHARE/tests/truth/onnx-products.onnx --input x.npy --expect x.npy
--- exit 1
--- stdout
--- stderr
x.npy: error: 24 values, but output Gemm_0_0 is 3x5
--- run amphora eval SHARE/tests/truth/onnx-products.onnx --input x.npy --input x.npy
--- exit 1
--- stdout
--- stderr
SHARE/tests/truth/onnx-products.onnx: error: the network has 1 inputs, but --input was given 2 times
--- run sed 's/name: "x" type/name: "seeded_as_its_tensor" type/' SHARE/tests/cases/fork.prototxt > fork.prototxt; amphora eval fork.prototxt --outputs p -o want > log; amphora compile fork.prototxt --outputs p -t ring-npu -o list > log; amphora simulate list/fork.cmd -t ring-npu -o have > log; cmp want/p.npy have/p.npy
--- exit 0
--- stdout
--- stderr
