/* schema.c - field numbers of Caffe's messages, for binary networks.
 *
 * The numbers are those of BVLC's caffe.proto. Fields that the front end never
 * asks for are here only where they are common, so that they are not called
 * unknown. Blobs stay slices: weights.c reads them where it needs them.
 */
#include "frontends/caffe/caffe.h"
#include "frontends/proto/schema_rows.h"

SCHEMA(shape, INT(1, "dim"));
SCHEMA(state, INT(1, "phase"), INT(2, "level"), TEXT(3, "stage"));
SCHEMA(rule, INT(1, "phase"), INT(2, "min_level"), INT(3, "max_level"),
       TEXT(4, "stage"), TEXT(5, "not_stage"));
SCHEMA(transform, FLOAT(1, "scale"), BOOL(2, "mirror"), INT(3, "crop_size"),
       TEXT(4, "mean_file"), FLOAT(5, "mean_value"), BOOL(6, "force_color"),
       BOOL(7, "force_gray"));
SCHEMA(batch_norm, BOOL(1, "use_global_stats"),
       FLOAT(2, "moving_average_fraction"), FLOAT(3, "eps"));
SCHEMA(bias, INT(1, "axis"), INT(2, "num_axes"), RAW(3, "filler"));
SCHEMA(scale, INT(1, "axis"), INT(2, "num_axes"), RAW(3, "filler"),
       BOOL(4, "bias_term"), RAW(5, "bias_filler"));
SCHEMA(clip, FLOAT(1, "min"), FLOAT(2, "max"));
SCHEMA(concat, INT(1, "concat_dim"), INT(2, "axis"));
SCHEMA(convolution, INT(1, "num_output"), BOOL(2, "bias_term"), INT(3, "pad"),
       INT(4, "kernel_size"), INT(5, "group"), INT(6, "stride"),
       RAW(7, "weight_filler"), RAW(8, "bias_filler"), INT(9, "pad_h"),
       INT(10, "pad_w"), INT(11, "kernel_h"), INT(12, "kernel_w"),
       INT(13, "stride_h"), INT(14, "stride_w"), INT(15, "engine"),
       INT(16, "axis"), BOOL(17, "force_nd_im2col"), INT(18, "dilation"));
SCHEMA(crop, INT(1, "axis"), INT(2, "offset"));
SCHEMA(data, TEXT(1, "source"), INT(4, "batch_size"), INT(5, "crop_size"));
SCHEMA(dummy_data, RAW(1, "data_filler"), INT(2, "num"), INT(3, "channels"),
       INT(4, "height"), INT(5, "width"), SUB(6, "shape", shape));
SCHEMA(eltwise, INT(1, "operation"), FLOAT(2, "coeff"),
       BOOL(3, "stable_prod_grad"));
SCHEMA(flatten, INT(1, "axis"), INT(2, "end_axis"));
SCHEMA(image_data, TEXT(1, "source"), INT(4, "batch_size"), INT(5, "crop_size"),
       INT(9, "new_height"), INT(10, "new_width"), BOOL(11, "is_color"));
SCHEMA(inner_product, INT(1, "num_output"), BOOL(2, "bias_term"),
       RAW(3, "weight_filler"), RAW(4, "bias_filler"), INT(5, "axis"),
       BOOL(6, "transpose"));
SCHEMA(input, SUB(1, "shape", shape));
SCHEMA(lrn, INT(1, "local_size"), FLOAT(2, "alpha"), FLOAT(3, "beta"),
       INT(4, "norm_region"), FLOAT(5, "k"), INT(6, "engine"));
SCHEMA(memory_data, INT(1, "batch_size"), INT(2, "channels"), INT(3, "height"),
       INT(4, "width"));
SCHEMA(pooling, INT(1, "pool"), INT(2, "kernel_size"), INT(3, "stride"),
       INT(4, "pad"), INT(5, "kernel_h"), INT(6, "kernel_w"),
       INT(7, "stride_h"), INT(8, "stride_w"), INT(9, "pad_h"),
       INT(10, "pad_w"), INT(11, "engine"), BOOL(12, "global_pooling"),
       INT(13, "round_mode"));
SCHEMA(power, FLOAT(1, "power"), FLOAT(2, "scale"), FLOAT(3, "shift"));
SCHEMA(prelu, RAW(1, "filler"), BOOL(2, "channel_shared"));
SCHEMA(relu, FLOAT(1, "negative_slope"), INT(2, "engine"));
SCHEMA(reshape, SUB(1, "shape", shape), INT(2, "axis"), INT(3, "num_axes"));
SCHEMA(slice, INT(1, "slice_dim"), INT(2, "slice_point"), INT(3, "axis"));
SCHEMA(softmax, INT(1, "engine"), INT(2, "axis"));

/* Those of the fork that single-shot detectors came with. */
SCHEMA(permute, INT(1, "order"));
SCHEMA(prior_box, FLOAT(1, "min_size"), FLOAT(2, "max_size"),
       FLOAT(3, "aspect_ratio"), BOOL(4, "flip"), BOOL(5, "clip"),
       FLOAT(6, "variance"), INT(7, "img_size"), INT(8, "img_h"),
       INT(9, "img_w"), FLOAT(10, "step"), FLOAT(11, "step_h"),
       FLOAT(12, "step_w"), FLOAT(13, "offset"));
SCHEMA(detection, INT(1, "num_classes"), BOOL(2, "share_location"),
       INT(3, "background_label_id"), RAW(4, "nms_param"),
       RAW(5, "save_output_param"), INT(6, "code_type"), INT(7, "keep_top_k"),
       BOOL(8, "variance_encoded_in_target"),
       FLOAT(9, "confidence_threshold"));
SCHEMA(norm, BOOL(1, "across_spatial"), RAW(2, "scale_filler"),
       BOOL(3, "channel_shared"), FLOAT(4, "eps"));

SCHEMA(layer, TEXT(1, "name"), TEXT(2, "type"), TEXT(3, "bottom"),
       TEXT(4, "top"), FLOAT(5, "loss_weight"), RAW(6, "param"),
       RAW(7, "blobs"), SUB(8, "include", rule), SUB(9, "exclude", rule),
       INT(10, "phase"), BOOL(11, "propagate_down"),
       SUB(100, "transform_param", transform), RAW(101, "loss_param"),
       RAW(102, "accuracy_param"), SUB(104, "concat_param", concat),
       SUB(106, "convolution_param", convolution), SUB(107, "data_param", data),
       RAW(108, "dropout_param"), SUB(109, "dummy_data_param", dummy_data),
       SUB(110, "eltwise_param", eltwise), RAW(112, "hdf5_data_param"),
       SUB(115, "image_data_param", image_data),
       SUB(117, "inner_product_param", inner_product),
       SUB(118, "lrn_param", lrn), SUB(119, "memory_data_param", memory_data),
       SUB(121, "pooling_param", pooling), SUB(122, "power_param", power),
       SUB(123, "relu_param", relu), RAW(124, "sigmoid_param"),
       SUB(125, "softmax_param", softmax), SUB(126, "slice_param", slice),
       RAW(127, "tanh_param"), RAW(129, "window_data_param"),
       SUB(131, "prelu_param", prelu), SUB(133, "reshape_param", reshape),
       SUB(135, "flatten_param", flatten),
       SUB(139, "batch_norm_param", batch_norm), SUB(141, "bias_param", bias),
       SUB(142, "scale_param", scale), SUB(143, "input_param", input),
       SUB(144, "crop_param", crop), SUB(148, "clip_param", clip),
       SUB(202, "permute_param", permute),
       SUB(203, "prior_box_param", prior_box),
       SUB(204, "detection_output_param", detection),
       SUB(206, "norm_param", norm));

SCHEMA(v1_layer, RAW(1, "layer"), TEXT(2, "bottom"), TEXT(3, "top"),
       TEXT(4, "name"), INT(5, "type"), RAW(6, "blobs"), FLOAT(7, "blobs_lr"),
       FLOAT(8, "weight_decay"), SUB(9, "concat_param", concat),
       SUB(10, "convolution_param", convolution), SUB(11, "data_param", data),
       RAW(12, "dropout_param"), RAW(13, "hdf5_data_param"),
       SUB(15, "image_data_param", image_data),
       SUB(17, "inner_product_param", inner_product), SUB(18, "lrn_param", lrn),
       SUB(19, "pooling_param", pooling), RAW(20, "window_data_param"),
       SUB(21, "power_param", power), SUB(22, "memory_data_param", memory_data),
       SUB(24, "eltwise_param", eltwise),
       SUB(26, "dummy_data_param", dummy_data), RAW(27, "accuracy_param"),
       SUB(30, "relu_param", relu), SUB(31, "slice_param", slice),
       SUB(32, "include", rule), SUB(33, "exclude", rule),
       FLOAT(35, "loss_weight"), SUB(36, "transform_param", transform),
       RAW(37, "tanh_param"), RAW(38, "sigmoid_param"),
       SUB(39, "softmax_param", softmax), RAW(42, "loss_param"),
       TEXT(1001, "param"), INT(1002, "blob_share_mode"));

static const ProtoRow net_rows[] = {
    TEXT(1, "name"),           SUB(2, "layers", v1_layer),
    TEXT(3, "input"),          INT(4, "input_dim"),
    BOOL(5, "force_backward"), SUB(6, "state", state),
    BOOL(7, "debug_info"),     SUB(8, "input_shape", shape),
    SUB(100, "layer", layer),
};
const ProtoSchema caffe_schema = {sizeof net_rows / sizeof *net_rows, net_rows};
