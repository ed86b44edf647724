"""Kernel names by the class they belong to, written from knowledge of the public code bases.

They are here to catch a rule that became too wide or too narrow, so each family has its awkward
members: the ones whose name holds a word of another class.
"""

from __future__ import annotations

NAMES: dict[str, str] = {
    "gemm": """
        ampere_bf16_s16816gemm_bf16_128x256_ldg8_f2f_stages_64x3_tn
        turing_fp16_s1688gemm_fp16_128x128_ldg8_f2f_nn
        volta_fp16_s884gemm_fp16_64x64_ldg8_f2f_tn
        maxwell_sgemm_128x64_nt
        ampere_zgemm_32x32_nn
        sm80_xmma_gemm_bf16bf16_bf16f32_f32_nt_n_tilesize64x64x64_stage4_warpsize2x2x1_tensor16x8x16_kernel
        sm90_xmma_gemm_e4m3bf16_e4m3f32_f32_tn_n_tilesize128x128x128_warpgroupsize1x1x1_bias_execute_kernel__5x_cublas
        nvjet_tst_128x256_64x4_2x1_v_bz_coopA_NNT
        nvjet_hsh_256x128_64x4_1x2_h_bz_TNT
        nvjet_sm103_ootst_256x248_128x5_4x1_2cta_v_bz_Avec16UE4M3_Bvec16UE4M3_TNT
        void gemvNSP_kernel<float, float, float, float, 1, 32, 4, 1024, cublasGemvParams<int>>(T1)
        void gemv2T_kernel_val<int, int, float, float, float, float, 128, 16, 4, 4, false>(int)
        void internal::gemvx::kernel<int, int, __half, __half, float, false, true>(cublasGemvParamsEx)
        void gemmSN_TN_kernel<float, 128, 16, 2, 4, 4, 4, true>(cublasGemmSmallNParams)
        void dot_kernel<float, 128, 0, cublasDotParams<cublasGemvTensor<float const>>>(cublasDotParams)
        void cublasLt::splitKreduce_kernel<32, 16, int, float, float>(cublasLt::cublasSplitKParams<float>)
        _ZN8cublasLt19splitKreduce_kernelILi32ELi16EiffEEvNS_18cublasSplitKParamsIT2_EE
        void cutlass::Kernel2<cutlass_80_tensorop_f16_s16816gemm_relu_f16_256x128_32x3_nn_align8>(T1::Params)
        void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<cute::tuple<int, int, int, int>, cutlass::gemm::collective::CollectiveMma<cutlass::gemm::MainloopSm90TmaGmmaWarpSpecializedFP8<4>>>>(T1::Params)
        _ZN7cutlass13device_kernelINS_4gemm6kernel13GemmUniversalIN4cute5tupleIJiiiiEEENS1_10collective13CollectiveMmaE
        cutlass_80_wmma_tensorop_s161616gemm_bf16_32x32_128x1_nn_align8
        void cutlass::Kernel<cutlass::gemm::kernel::GemmGrouped<cutlass::gemm::threadblock::MmaMultistage<int>>>(T1::Params)
        void deep_gemm::sm90_fp8_gemm_1d1d_impl<7168, 4096, 2048, 128>(float*, int)
        void deep_gemm::sm100_bf16_gemm_impl<0, 128>(int*, unsigned int)
        deep_gemm::sm100_m_grouped_fp8_gemm_contiguous_1d1d
        fused_moe_kernel
        fused_moe_kernel_gptq_awq
        _w8a8_block_fp8_matmul
        _w8a8_triton_block_scaled_mm
        void marlin::Marlin<__nv_bfloat16, 1125899906909960l, 256, 1, 8, 8, 4, true>(int4 const*, int4 const*)
        void marlin_moe_wna16::Marlin<__nv_bfloat16, 3>(int4 const*)
        void gptq::gemm_half_q_half_gptq_4bit_kernel<true, 4>(__half const*)
        awq_gemm_kernel
        void kgemm_4bit_inference_naive<__nv_bfloat16, 128, 16>(int, int, int)
        triton_tem_fused_addmm_relu_t_3
        triton_mm
        triton_tem_fused_bmm_12
        gemm_fusion_dot_17
        triton_gemm_dot_34
        void mul_mat_vec_q<(ggml_type)12, 1, false>(void const*, void const*)
        void mul_mat_q<(ggml_type)8, 128, false>(char const*)
        Cijk_Ailk_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT256x256x64_MI16x16x1_SN
        bmm_E4m3_E4m3E4m3_Fp32_t128x8x128u2_s6_et64x8_m64x8x32_cga1x1x1_16dp256b_TN_transOut_dynBatch_sm100f
        _grouped_gemm_kernel
        _ragged_matmul_kernel
        matmul_kernel_persistent
        void trsm_left_kernel<float, 256, 4, false, true, true, false, false>(cublasTrsmParams)
        void cusparse::csrmm_alg2_kernel<128, float>(int)
        _mm_kernel_nt
        matrixMulCUDA
        mhc_pre_gemm_sqrsum_splitk
        void tensorrt_llm::kernels::weight_only::fpA_intB_gemv_kernel<int>(T)
        __myl_FcMulSum_0x6f2a
    """,
    "conv": """
        sm80_xmma_fprop_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc_tilesize128x128x64_stage3_warpsize2x2x1_g1_tensor16x8x16_kernel_cudnn
        sm90_xmma_wgrad_implicit_gemm_indexed_f16f16_f16f32_f32_nhwckrsc_nhwc_tilesize256x128x64_kernel_cudnn
        void implicit_convolve_sgemm<float, float, 1024, 5, 5, 3, 3, 3, 1, false, false, true>(int, int)
        void cudnn::cnn::conv2d_grouped_direct_kernel<false, true, false, 0, 0, int, float>(float)
        void cudnn::cnn::wgrad2d_grouped_direct_kernel<false, true, int>(float)
        void cudnn::detail::dgrad_engine<float, 128, 6, 7, 3, 3, 5, false>(int)
        volta_fp16_s884cudnn_fp16_256x128_ldg8_relu_f2f_exp_interior_nhwc_tn_v1
        trt_ampere_h1688cudnn_128x128_ldg8_relu_exp_medium_nhwc_tn_v1
        maxwell_scudnn_winograd_128x128_ldg1_ldg4_tile148n_nt_v1
        void winograd_forward_output_kernel<float>(int)
        void cutlass__5x_cudnn::Kernel<cutlass_tensorop_f16_s16816wgrad_optimized_f16_256x128_32x3_nhwc_align8>(T1::Params)
        void cutlass::device_kernel<cutlass::conv::kernel::ConvUniversal<cutlass::conv::ConvProblemShape<0>>>(T1::Params)
        void at::native::(anonymous namespace)::conv_depthwise2d_forward_kernel<5, float, int>(int)
        void at::native::im2col_kernel<float>(long, float const*)
        void at::native::vol2col_kernel<float>(long)
        void causal_conv1d_fwd_kernel<Causal_conv1d_fwd_kernel_traits<128, 4, true, c10::BFloat16>>(ConvParamsBase)
        _causal_conv1d_update_kernel
        triton_tem_fused_convolution_4
        void cask__5x_cudnn::computeOffsetsKernel(cask__5x_cudnn::ComputeOffsetsParams)
        void fft2d_c2r_32x32<float, false, false, 0, false, false>(float*)
        dwconv2d_forward_nhwc
    """,
    "attention": """
        void flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64, 4, false, false, cutlass::bfloat16_t>>(Flash_fwd_params)
        void flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<Flash_bwd_kernel_traits<64>>(flash::Flash_bwd_params)
        void flash::flash_fwd_splitkv_combine_kernel<Flash_fwd_kernel_traits<128>, 4, 1>(Flash_fwd_params)
        void pytorch_flash::flash_bwd_dot_do_o_kernel<true>(pytorch_flash::Flash_bwd_params)
        void cutlass::device_kernel<flash::FlashAttnBwdSm90<flash::CollectiveMainloopBwdSm90<2, 2>>>(T1::Params)
        void cutlass::device_kernel<flash::FlashAttnBwdPostprocessConvertdQ<cute::tuple<int>, cutlass::bfloat16_t>>(T1::Params)
        _ZN7cutlass13device_kernelIN5flash11enable_sm90INS1_16FlashAttnFwdSm90INS1_24CollectiveMainloopFwdSm90ILi2E
        void cutlass::device_kernel<cutlass::fmha::kernel::Sm100FmhaFwdKernelTmaWarpspecialized<int>>(T1::Params)
        kernel_cutlass_kernel_flash_attncuteflash_fwd_sm100FlashAttentionForwardSm100_object_at__tensorptrbf16
        fmha_v2_flash_attention_bf16_64_64_S_q_paged_kv_128_causal_tma_ws_sm90_kernel
        fmha_cutlassF_f16_aligned_64x64_rf_sm80(PyTorchMemEffAttention::AttentionKernel<cutlass::half_t>::Params)
        fmhaSm100fKernel_QkvBfloat16OBfloat16H128PagedKvDenseP32VarSeqQ128Kv128StaticContext
        void mmha::masked_multihead_attention_kernel<unsigned short, unsigned short>(Params)
        kernel_mha
        void vllm::paged_attention_v1_kernel<__nv_bfloat16, __nv_bfloat16, 128, 16, 128>(T)
        void vllm::paged_attention_v2_reduce_kernel<unsigned short, 128, 128, 512>(T)
        void vllm::merge_attn_states_kernel<c10::BFloat16, unsigned int>(T)
        void flashinfer::BatchDecodeWithPagedKVCacheKernel<(flashinfer::PosEncodingMode)0, 2, 8, 16>(T)
        void flashinfer::BatchPrefillWithPagedKVCacheKernel<flashinfer::KernelTraits<0>>(T)
        void flashinfer::PersistentVariableLengthMergeStatesKernel<8, 16, 8, 4>(T)
        flash::flash_fwd_splitkv_mla_kernel
        void deep_gemm::sm90_fp8_paged_mqa_logits<32, 128>(int)
        cudnn_generated_fort_native_sdpa_sm100_flash_bprop_f16_knob_3_128x128x192_4x1x1_kernel0_0
        cudnn_generated_oss_sdpa_sm90_flash_fprop_wgmma_f16
        void cudnn::fusion::compute_dot_do_o<true, 128, int>(T)
        _attn_fwd
        _attn_bwd_dkdv
        _fwd_grouped_kernel_stage1_attn
        triton_tem_fused_flex_attention_backward_7
        void transformer_engine::context_parallel::thd_lse_kernel<double>(T)
        ring_attention_block_kernel
        chunk_gated_delta_rule_fwd_kernel_h_blockdim64
        void flash_attn_ext_f16<128, 128, 16, 4>(char const*)
        void flash_attn_tile<64, 64>(char const*)
        void attention_kernel_batched_impl<AttentionKernel<float>>(T)
        __myl_MhaFwd_0x12
    """,
    "norm": """
        void layer_norm::ln_fwd_kernel<layer_norm::Kernel_traits<__nv_bfloat16, 4096u, 1u>>(layer_norm::FwdParams)
        void transformer_engine::normalization::rmsnorm_bwd_general_kernel<int>(T)
        void cuApplyLayerNorm<float, float, float>(float*, float*, float*)
        void cuApplyRMSNorm<float, float, float>(float*)
        void cuComputeGradInput<float, float, float>(float const*)
        void cuComputePartGradGammaBeta<float, float, float>(float const*)
        void at::native::batch_norm_collect_statistics_kernel<at::native::InvStd, float, float, float, int>(T)
        void at::native::batch_norm_transform_input_channels_last_kernel<c10::BFloat16, float>(T)
        void at::native::(anonymous namespace)::RowwiseMomentsCUDAKernel<c10::BFloat16>(long)
        void at::native::(anonymous namespace)::cuComputeGradInput<float, float, true>(T)
        void at::native::(anonymous namespace)::GammaBetaBackwardCUDAKernelTemplate<float, 64u>(long)
        void vllm::rms_norm_static_fp8_quant_kernel<c10::BFloat16, c10::Float8_e4m3fn>(T)
        void vllm::fused_add_rms_norm_static_fp8_quant_kernel<c10::Half, 8>(T)
        void tensorrt_llm::kernels::generalRmsNorm<__half, signed char>(T)
        void tensorrt_llm::kernels::fusedQKNormRopeKernel<128, true>(void*, int)
        void flashinfer::norm::FusedAddRMSNormKernel<8u, __nv_bfloat16>(T)
        _layer_norm_fwd_1pass_kernel
        _rms_norm_backward_kernel
        _layer_norm_bwd_dx_fused
        l2norm_fwd_kernel1
        triton_per_fused_native_layer_norm_5
        triton_red_fused__native_batch_norm_legit_functional_relu_2
        triton_red_fused_native_group_norm_silu_11
        void rms_norm_f32<1024, true, false>(float const*, float*)
        void cudnn::bn_fw_tr_1C11_singleread<float, 512, true, 1, 2, 0>(T)
        cudnn_generated_fort_native_ln_fwd_kernel
        void groupNormNHWCSumKernel<160>(GroupNormNHWCParams)
        fused_qk_norm_rope_kernel
        instance_norm_forward
    """,
    "quantize": """
        void transformer_engine::dispatch::mxfp8::quantize_kernel::quantize_mxfp8_kernel<false, false>(T)
        void transformer_engine::detail::cast_transpose_general_kernel<8, 8, true, __nv_bfloat16>(T)
        void transformer_engine::HadamardAmaxTmaKernel<__nv_bfloat16>(T)
        void transformer_engine::amax_kernel<8, true, __nv_bfloat16>(T)
        void fast_hadamard_transform_kernel<fast_hadamard_transform_kernel_traits<128, 8>>(HadamardParamsBase)
        _per_token_group_quant_fp8
        void per_token_group_quant_8bit_kernel<c10::BFloat16, c10::Float8_e4m3fn, true>(T)
        void vllm::scaled_fp8_quant_kernel<c10::BFloat16, c10::Float8_e4m3fn>(T)
        void vllm::dynamic_per_token_scaled_fp8_quant_kernel<c10::BFloat16>(T)
        void vllm::cvt_fp16_to_fp4_quantize<__nv_bfloat16, false>(T)
        void tensorrt_llm::kernels::quantize_with_block_size<(BlockScaleQuantizationType)0, __nv_bfloat16, 16>(T)
        void kQuantizeBlockwise<__nv_bfloat16, 64, 2, 0, 2>(float*)
        void kDequantizeBlockwise<__nv_bfloat16, 512, 64, 8, 2>(float*)
        void kdequant_mm_int32_fp16<4, 512>(int*)
        void dequantize_weights(int*, __half*, int*, __half*, int)
        void quantize_q8_1(float const*, void*, long)
        void flashinfer::quantize_fp8_per_tensor<int>(T)
        deep_gemm::transpose_and_pack_fp32_into_ue8m0
        _quantize_mxfp8_rowwise
        void at::native::vectorized_elementwise_kernel<4, at::native::float8_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda(float)#1}, std::array<char*, 2ul>>(int)
        transformer_engine::swizzle_col_scaling_kernel
    """,
    "optimizer": """
        void multi_tensor_apply_kernel<TensorListMetadata<4>, LAMBStage2Functor<float, float>, float*>(long)
        void multi_tensor_apply_kernel<transformer_engine::multi_tensor_apply::TensorListMetadata<5, false>, transformer_engine::multi_tensor_adam::AdamFunctorMaster<int>>(long)
        _ZN2at6native55_GLOBAL__N__8b143dc9_20_ForeachBinaryOpScalar_cu_abcdef25multi_tensor_apply_kernelINS1_18TensorListMetadataILi1EEE
        void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous namespace)::FusedOptimizerTensorListMetadata<4>, at::native::(anonymous namespace)::FusedAdamMathFunctor<float, 4>>(T)
        void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::<unnamed>::TensorListMetadata<1>, at::native::<unnamed>::LpNormFunctor<float, (at::native::NormType)2>>(T)
        void at::native::lpnorm_cleanup<float, (at::native::NormType)1, float>(float const*)
        at::native::amp_update_scale_cuda_kernel(float*, int*, float const*, double, double, int)
        void kOptimizer32bit1State<__nv_bfloat16, 5>(__nv_bfloat16*)
        void kOptimizerStatic8bit2StateBlockwise<float, 0, 256, 1>(float*)
        void kPreconditionOptimizer32bit2State<float, 0, 4096, 8>(float*)
        adam_kernel
        fused_adamw_kernel
        _fused_adam_step
        sgd_momentum_update
        void adam_update<float>(float*, float const*, float*, float*)
        adamw_kernel3
        _lion_update_fn_kernel
        muon_update_kernel
        triton_for_fused_0
        clip_grad_norm_kernel
        global_norm_squared_kernel
        void fbgemm_gpu::split_embedding_backward_codegen_rowwise_adagrad_unweighted_kernel<float>(T)
    """,
    "elementwise": """
        void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<c10::BFloat16>, std::array<char*, 3ul>>(int)
        void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl<at::native::(anonymous namespace)::layer_norm_like_functor>>(int)
        _ZN2at6native29vectorized_elementwise_kernelILi4ENS0_15CUDAFunctor_addIfEESt5arrayIPcLm3EEEEviT0_T1_
        void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::NormTwoOps<float, float, float>>>(T)
        void at::native::(anonymous namespace)::cunn_SoftMaxForward<8, c10::BFloat16, float, float>(T)
        void at::native::(anonymous namespace)::nll_loss_forward_reduce_cuda_kernel_2d<float, float, long>(T)
        void at::native::(anonymous namespace)::fused_dropout_kernel_vec<float, float, unsigned int, 1, 4, bool>(T)
        void at::native::embedding_backward_feature_kernel<float, float, long>(long const*)
        void at::native::bitonicSortKVInPlace<-2, -1, 16, 16, long>(T)
        void at::native::triu_tril_kernel<float, int, true, 2, false>(T)
        void scaled_upper_triang_masked_softmax_warp_forward<__half, __half, float, 10>(__half*)
        void (anonymous namespace)::softmax_warp_backward<float, float, float, 8, true, false>(float*)
        triton_poi_fused_add_0
        triton_poi_fused__to_copy_all_gather_into_tensor_wait_tensor_3
        triton_red_fused__softmax_backward_data_masked_fill_9
        triton_per_fused_sum_2
        triton__0d1d2d3de
        loop_broadcast_fusion_3
        loop_convert_fusion
        input_reduce_fusion_12
        input_transpose_fusion_2
        wrapped_slice_4
        fusion_12
        concatenate_3
        shift_right_logical_3
        void jax::(anonymous namespace)::ThreeFry2x32Kernel<int>(unsigned int const*)
        void cub::CUB_200400_SM_90::DeviceRadixSortOnesweepKernel<cub::DeviceRadixSortPolicy<float, int>>(T)
        void cub::DeviceSegmentedReduceKernel<cub::DeviceReducePolicy<float>>(T)
        void thrust::cuda_cub::core::_kernel_agent<thrust::cuda_cub::__parallel_for::ParallelForAgent<thrust::cuda_cub::__fill::functor<float>>>(T)
        void generate_seed_pseudo<rng_config<curandStateXORWOW>>(unsigned long long)
        void gen_sequenced<curandStateXORWOW, float2, normal_args_st>(T)
        void vllm::act_and_mul_kernel<c10::BFloat16, &vllm::silu_kernel>(T)
        void vllm::reshape_and_cache_flash_kernel<__nv_bfloat16, __nv_bfloat16>(T)
        void vllm::concat_and_cache_mla_kernel<__nv_bfloat16>(T)
        void vllm::rotary_embedding_kernel<c10::Half, false>(T)
        void flashinfer::AppendPagedKVCacheKernel<128u, 8u>(T)
        void flashinfer::BatchQKApplyRotaryPosIdsCosSinCacheKernel<true, 128>(T)
        void tensorrt_llm::kernels::applyBiasRopeUpdateKVCacheV2<__nv_bfloat16, 8>(T)
        _swiglu_forward_kernel
        _geglu_tanh_backward_kernel
        liger_cross_entropy_kernel
        element_mul_kernel
        _triton_rope
        swiglu_kernel
        void cudnn::ops::nchwToNhwcKernel<__half, __half, float, false, true>(T)
        void cudnn::pooling_fw_4d_kernel<float, float, cudnn::maxpooling_func<float>>(T)
        void softmax_warp_allreduce_kernel<float>(T)
        void k_get_rows<float, float>(T)
        void soft_max_f32<true, 0, 0>(T)
        void axpy_kernel_val<float, double>(cublasAxpyParamsVal)
        void scal_kernel_val<float, float>(T)
        void copy_kernel<float, 1, 0, 7, 9, 3, 4>(cublasCopyParams)
        saxpy(int, float, float*, float*)
        vectorAdd(float const*, float const*, float*, int)
        __myl_AddSigmMul_0x91
        blockReduceSum
        void transpose_kernel<float, 32>(float*)
        void cuInt8::nchwTonchw<float, int>(T)
        void genericReformat::copyPackedKernel<float, float, true>(T)
        void fbgemm_gpu::jagged_dense_elementwise_add_kernel<int>(T)
        split_embedding_codegen_forward_unweighted_kernel
        void convert_fp32_to_bf16<float>(T)
    """,
    "other": """
        void vllm::moe::topkGatingSoftmax<8, 128, 4, 16>(float const*)
        void vllm::moe::moe_align_block_size_kernel<int>(T)
        void moe::dev::routing::routingRenormalize::routingIndicesClusterKernel<int>(T)
        void transformer_engine::fused_router::fused_topk_with_score_function_backward_kernel<float>(T)
        void tensorrt_llm::kernels::computeExpertFirstTokenOffset<int>(T)
        void at::native::sbtopk::gatherTopK<float, unsigned int, 2, false>(T)
        __get_group_gemm_starts
        jacobi_kernel
        lbm_stream_collide
        void Kokkos::Impl::cuda_parallel_launch_local_memory<Kokkos::Impl::ParallelFor<int>>(T)
        nbnxn_kernel_ElecEwTwinCut_VdwLJ_F_cuda
        pme_solve_kernel
        void AMReX::launch_global<128>(T)
        spin_lattice_energy
        kernel
        my_dispatch_table
        combine_results
        dispatch_rays
        broadcast_bc_values
        sender_receiver_geometry
        awaiting
    """,
    "fused_gemm_comm": """
        void cutlass::Kernel<bytedance::flux::GemmV2ReduceScatter<int>>(T1::Params)
        void cutlass::device_kernel<cutlass::gemm::kernel::GemmARUniversal<int, cutlass::distributed::AllReduce>>(T1::Params)
        kernel_gemm_rs_producer_fuse_scatter
        ag_gemm_kernel
        kernel_consumer_gemm_persistent
        gemm_allreduce_persistent_kernel
        all_gather_matmul_kernel
        matmul_reduce_scatter_kernel
        deep_gemm::sm100_fp8_fp4_mega_moe_impl
    """,
    "nccl": """
        ncclAllReduceRingLLKernel_sum_f32(ncclColl)
        ncclBroadcastRingKernel_copy_i8(ncclColl)
        ncclKernel_AllReduce_TREE_LL_Sum_float(ncclDevComm*, unsigned long, ncclWork*)
        _Z38ncclKernel_AllReduce_RING_LL_Sum_floatP11ncclDevCommmP8ncclWork
        ncclKernel_AllGather_RING_SIMPLE_Sum_int8_t
        ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<(unsigned long)4096>)
        ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL
        ncclDevKernel_SendRecv(ncclDevComm*, unsigned long, ncclWork*)
        ncclSymDevKernel_AllGather_ST(ncclSymDevArgs)
        ncclSymkDevKernel_AllReduce_RSxLD_AGxST_sum_f16
        ncclDevKernel_AllReduce_PreMulSum_f32_RING_LL
        ncclDevFunc_AllToAllPivot
        oneRankReduce(void*, void*, unsigned long, unsigned long, bool)
        void oneRankReduce<FuncPreMulSum<float>>(void*, void*)
    """,
    "transport": """
        dispatch
        combine
        void deep_ep::internode_ll::dispatch<true, false, 7168>(void*, float*)
        void deep_ep::intranode::combine<__nv_bfloat16, 8, 768, 4096>(T)
        _ZN7deep_ep9intranode8dispatchILi8ELi768ELi8192EEEvP4int4Pf
        void deep_ep::intranode::barrier<8>(int**, int)
        void deep_ep::elastic::dispatch_impl<8>(T)
        void hybrid_ep::dispatch_kernel<int, 8>(T)
        nccl_ep_jit_ht_dispatch_kernel
        nccl_ep_jit_ll_combine_kernel
        void vllm::cross_device_reduce_2stage<__nv_bfloat16, 8>(vllm::RankData*)
        void sglang::cross_device_reduce_1stage<__half, 4>(sglang::RankData*)
        void tensorrt_llm::kernels::oneShotAllReduceKernel<__half, 8>(T)
        void tensorrt_llm::kernels::moe_alltoall::moeA2ADispatchKernel<int>(T)
        void (anonymous namespace)::multimem_one_shot_all_reduce_kernel<c10::BFloat16, 16>(T)
        void (anonymous namespace)::two_shot_all_reduce_kernel<float, 16, 8, false>(T)
        barrier_on_stream_kernel_threadgroup
        void nvshmemi_alltoall_on_stream_kernel<int>(T)
        nvshmemi_proxy_quiet_entrypoint
        userbuffers_fp16_sum_inplace_gpu_mc_ag
        kuserbuffers_pushsendrecv
        userbuffers_pushrecv
        void mscclpp::allreduce7<float>(T)
        all_to_all_vdev_2d_kernel
        void mori::moe::EpDispatchIntraNodeKernel<int>(T)
        pplx::a2a_dispatch_send
        ubx_kernel_barrier
        void quickreduce::allreduce_prototype_twoshot<int>(T)
        allgather_multimem_kernel
    """,
    "dispatch": """
        scan
        void hybrid_ep::scan<1024, 8>(bool const*)
        void deep_ep::intranode::notify_dispatch<8>(int const*)
        void deep_ep::internode::cached_notify<false>(T)
        void deep_ep::layout::get_dispatch_layout<256, 32, 8>(long const*)
        nccl_ep_jit_ht_scan_kernel
        moe_permute_kernel
        void moe_unpermute_kernel<float, __nv_bfloat16>(T)
        _unpermute_bwd_with_merging_probs_kernel
        void tensorrt_llm::kernels::cutlass_kernels::expandInputRowsKernel<__nv_bfloat16>(T)
        void tensorrt_llm::kernels::cutlass_kernels::finalizeMoeRoutingKernel<__nv_bfloat16>(T)
        _fwd_kernel_ep_scatter_1
        _fwd_kernel_ep_gather
        pre_reorder_triton_kernel
        transformer_engine::multi_padding_kernel
        _row_id_map_pass_1_kernel
    """,
    "fused_comm": """
        void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_twoshot_sync<(AllReduceFusionPattern)1>(T)
        void tensorrt_llm::kernels::ar_fusion::allreduce_fusion_kernel_oneshot_lamport<int>(T)
        void tensorrt_llm::kernels::one_shot_all_reduce_norm_kernel<__half, 8>(T)
        void flashinfer::trtllm_mnnvl_allreduce::twoshotAllreduceRMSNormKernel<8>(T)
        fused_rs_ln_ag_reduce_scatter_layernorm_all_gather
        moereduce_allreduce_fusion_kernel_oneshot_lamport
    """,
    "wait": """
        at::cuda::(anonymous namespace)::spin_kernel(long)
        at::cuda::sleep_kernel
        wait_until_on_stream_and_reset
        void nvshmemi_signal_wait_until_on_stream_kernel(unsigned long*)
        wait_signal_kernel
        wait_flag
        _ZN9bytedance4flux15wait_geq_kernelEPKyy
        void deep_ep::elastic::engram_fetch_wait_impl<8>(T)
        gpu_spin_kernel
        delay_kernel
    """,
}

COLLECTIVES: dict[str, str] = {
    "AllReduce": """
        ncclAllReduceRingLLKernel_sum_f32(ncclColl)
        _Z38ncclKernel_AllReduce_RING_LL_Sum_floatP11ncclDevCommmP8ncclWork
        ncclSymkDevKernel_AllReduce_RSxLDMC_AGxSTMC_sum_bf16
        void vllm::cross_device_reduce_2stage<__nv_bfloat16, 8>(vllm::RankData*)
        userbuffers_fp16_sum_inplace_gpu_mc
        void flashinfer::trtllm_mnnvl_allreduce::rmsNormLamport<int>(T)
    """,
    "AllGather": """
        ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<(unsigned long)4096>)
        userbuffers_fp16_sum_inplace_gpu_mc_ag
        multimem_all_gather_kernel
    """,
    "ReduceScatter": """
        ncclDevKernel_ReduceScatter_Sum_f32_RING_LL
        ncclSymkDevKernel_ReduceScatter_RailA2A_LsaLD_sum_f32
        userbuffers_fp16_sum_inplace_gpu_rr_rs_oop_stride
    """,
    "AllToAll": """
        ncclDevFunc_AllToAllPivot
        ubx_kernel_a2av
        all_to_all_vdev_2d_kernel
    """,
    "Broadcast": "ncclKernel_Broadcast_RING_LL_Sum_int8_t(ncclDevComm*, unsigned long, ncclWork*)",
    "Reduce": "ncclDevKernel_Reduce_Sum_f32_RING_LL",
    "SendRecv": """
        ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<(unsigned long)4096>)
        kuserbuffers_pushsend
    """,
    "dispatch": """
        dispatch
        void deep_ep::internode_ll::dispatch<true, false, 7168>(void*, float*)
    """,
    "combine": """
        nccl_ep_jit_ll_combine_kernel
        void deep_ep::intranode::cached_notify_combine<8>(T)
    """,
    "other": """
        ncclDevKernel_Generic_4
        ubx_kernel_barrier
    """,
}
